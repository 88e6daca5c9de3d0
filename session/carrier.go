package session

import (
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// A carrier takes tokens out of requests and puts them into responses. Nothing of
// a token is ever read from a query or a form, which end in logs and histories.
type carrier interface {
	// find returns the request's token, if it has one. sent says whether there was
	// something in its place, whatever its shape.
	find(r *http.Request) (t token, ok, sent bool)

	// send makes the response carry text in place of any other token. A negative
	// maxAge says that the client's token is void; otherwise it is the life of a
	// cookie in seconds, 0 for as long as the browser runs.
	send(h http.Header, text string, maxAge int)

	// vary names the request header that find reads.
	vary() string
}

// onlyToken returns the token among the texts. Several different ones are none: one
// of them may have been planted.
func onlyToken(texts []string) (t token, ok bool) {
	for _, text := range texts {
		found, valid := parseToken(text)
		if !valid {
			continue
		}
		if ok && found != t {
			return token{}, false
		}
		t, ok = found, true
	}
	return t, ok
}

// header carries the token in a field of this canonical name, both ways. An empty
// field in a response says that the client's token is void.
type header string

func (n header) find(r *http.Request) (t token, ok, sent bool) {
	if r == nil {
		return token{}, false, false
	}
	texts := r.Header[string(n)]
	t, ok = onlyToken(texts)
	return t, ok, len(texts) > 0
}

func (n header) send(h http.Header, text string, _ int) { h[string(n)] = []string{text} }

func (n header) vary() string { return string(n) }

// taken are fields that mean something else, to net/http, to proxies or to browsers.
var taken = []string{
	"Accept", "Accept-Encoding", "Authorization", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Cookie", "Date", "Expect", "Forwarded", "Host", "Keep-Alive", "Location",
	"Origin", "Proxy-Authorization", "Referer", "Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"User-Agent", "Vary", "Via", "X-Forwarded-For",
}

// newHeader returns the carrier of that name.
func newHeader(name string) (header, error) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !isToken(name):
		return "", errors.New("session: Options.Header: not a valid name of a header field")
	case slices.Contains(taken, canonical):
		return "", errors.New("session: Options.Header: " + canonical + " has another meaning")
	}
	return header(canonical), nil
}

// isToken says whether s may name a header field, by RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		lower := s[i] | 0x20
		letter, digit := lower >= 'a' && lower <= 'z', s[i] >= '0' && s[i] <= '9'
		if !letter && !digit && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}
