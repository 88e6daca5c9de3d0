package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/session/storage"
)

// encoding is strict, so that only one text is valid for each token.
var encoding = base64.RawURLEncoding.Strict()

const (
	locatorText = 22 // 16 bytes in base64url
	secretText  = 43 // 32 bytes in base64url
	tokenText   = locatorText + 1 + secretText
)

// token is the part of a client's token that a store knows. The secret itself is only in the request or the response.
type token struct {
	redacted
	locator storage.Locator
	digest  storage.Digest // of the secret
}

func newLocator() (l storage.Locator) {
	rand.Read(l[:]) // never fails: crypto/rand ends the program instead
	return l
}

// newToken returns a token with a new secret, and its text for the client.
func newToken(l storage.Locator) (t token, text string) {
	var secret [32]byte
	rand.Read(secret[:])
	return token{locator: l, digest: sha256.Sum256(secret[:])}, l.Key() + "." + encoding.EncodeToString(secret[:])
}

// parseToken accepts exactly the texts that newToken returns.
func parseToken(s string) (t token, ok bool) {
	if len(s) != tokenText || s[locatorText] != '.' {
		return token{}, false
	}
	var secret [32]byte
	n1, err1 := encoding.Decode(t.locator[:], []byte(s[:locatorText]))
	n2, err2 := encoding.Decode(secret[:], []byte(s[locatorText+1:]))
	// The counts matter: the decoder skips line breaks.
	if err1 != nil || err2 != nil || n1 != len(t.locator) || n2 != len(secret) {
		return token{}, false
	}
	t.digest = sha256.Sum256(secret[:])
	return t, true
}

// A tokenTransport reads tokens from requests and writes them to responses, in a cookie or in a header field. It never
// reads a token from a query or a form, because these are logged and stored in histories.
type tokenTransport struct {
	header string // canonical name of the request header with the token
	scheme string // precedes the token in the header field, unless it is empty
	cookie Cookie // with defaults, if header is "Cookie"
}

func newTransport(o Options) (tokenTransport, error) {
	if o.Header == "" && o.HeaderScheme != "" {
		return tokenTransport{}, optionError("HeaderScheme", "requires Header")
	}
	if o.Header == "" {
		cookie := o.Cookie.withDefaults()
		return tokenTransport{header: "Cookie", cookie: cookie}, cookie.check()
	}
	header := textproto.CanonicalMIMEHeaderKey(o.Header)
	switch {
	case o.Cookie != Cookie{}:
		return tokenTransport{}, optionError("Cookie", "cannot be combined with Header, which sends no cookie")
	case (&http.Cookie{Name: o.Header}).Valid() != nil: // the same rules apply to both names
		return tokenTransport{}, optionError("Header", "is not a valid name of a header field")
	case header == "Authorization" && o.HeaderScheme == "":
		return tokenTransport{}, optionError("HeaderScheme", "is required with Authorization, for example Bearer")
	case slices.Contains(reserved, header):
		return tokenTransport{}, optionError("Header", "is %s, which has another meaning", header)
	case o.HeaderScheme != "" && (&http.Cookie{Name: o.HeaderScheme}).Valid() != nil:
		return tokenTransport{}, optionError("HeaderScheme", "is not a valid name of a scheme")
	}
	return tokenTransport{header: header, scheme: o.HeaderScheme}, nil
}

// reserved are header fields that have a meaning to net/http, to proxies or to browsers.
var reserved = []string{
	"Accept", "Accept-Encoding", "Cache-Control", "Connection", "Content-Encoding", "Content-Length",
	"Content-Type", "Cookie", "Date", "Expect", "Forwarded", "Host", "Keep-Alive", "Location", "Origin",
	"Proxy-Authorization", "Referer", "Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	"Vary", "Via", "X-Forwarded-For",
}

// find returns the request's token. ok is false if the request has no valid token, or several different ones, because one
// of them may have been planted, for instance by a neighbouring host. sent reports whether the request has the cookie or
// the header field at all.
func (tt tokenTransport) find(r *http.Request) (t token, ok, sent bool) {
	if r == nil {
		return token{}, false, false
	}
	texts := r.Header[tt.header]
	if tt.header == "Cookie" {
		texts = nil
		for _, c := range r.CookiesNamed(tt.cookie.Name) {
			if c.Quoted {
				c.Value = "" // send never quotes
			}
			texts = append(texts, c.Value)
		}
	}
	for _, text := range texts {
		found, valid := parseToken(tt.withoutScheme(text))
		if ok && valid && found != t {
			return token{}, false, true
		}
		if valid {
			t, ok = found, true
		}
	}
	return t, ok, len(texts) > 0
}

// withoutScheme returns the token in a text of a request, or "" if the text has another scheme.
func (tt tokenTransport) withoutScheme(text string) string {
	if tt.scheme == "" {
		return text
	}
	scheme, text, _ := strings.Cut(text, " ")
	if !strings.EqualFold(scheme, tt.scheme) {
		return ""
	}
	return strings.TrimLeft(text, " ")
}

// send adds text to the response's header in place of any other token, and keeps the response out of shared caches. For
// maxAge, see [Cookie.send]. To make the client forget its token, text is empty and maxAge negative.
func (tt tokenTransport) send(h http.Header, text string, maxAge int) {
	switch {
	case tt.header == "Cookie":
		tt.cookie.send(h, text, maxAge)
	case tt.scheme == "" || text == "":
		h[tt.header] = []string{text}
	default:
		h[tt.header] = []string{tt.scheme + " " + text}
	}
	makePrivate(h)
}

// makePrivate keeps the response out of shared caches. It leaves no-store and private as they are, and removes the
// fields that some caches obey instead of Cache-Control (RFC 9213).
func makePrivate(h http.Header) {
	for name := range h {
		if strings.HasSuffix(name, "Cdn-Cache-Control") || name == "Surrogate-Control" {
			delete(h, name)
		}
	}
	directives := []string{"private"}
	for _, line := range h["Cache-Control"] {
		for d := range strings.SplitSeq(line, ",") {
			d = strings.TrimSpace(d)
			switch name, _, _ := strings.Cut(strings.ToLower(d), "="); {
			case d == "", name == "public", name == "s-maxage", strings.EqualFold(d, "private"):
			case name == "no-store":
				return
			default:
				directives = append(directives, d)
			}
		}
	}
	h["Cache-Control"] = []string{strings.Join(directives, ", ")}
}
