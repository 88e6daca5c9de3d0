package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// template is a rule's key: what requests are counted by.
type template struct {
	parts []part
	key   ratelimit.KeyFunc
}

// part is what stands in braces, or the text between.
type part struct {
	kind string // client, header, cookie, query, host, path, method; "" is text
	name string // of the header and the like; the text
}

// newTemplate reads a template. address is the key function of {client.ip}.
func newTemplate(text string, address ratelimit.KeyFunc) (*template, error) {
	t := &template{}
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		if before != "" {
			t.parts = append(t.parts, part{name: before})
		}
		if !found {
			break
		}
		inner, behind, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("%q has no } for its {", text)
		}
		p, err := newPart(inner)
		if err != nil {
			return nil, err
		}
		t.parts, rest = append(t.parts, p), behind
	}
	var keys []ratelimit.KeyFunc
	for _, p := range t.parts {
		if p.kind != "" {
			keys = append(keys, p.keyFunc(address))
		}
	}
	switch len(keys) {
	case 0:
		return nil, fmt.Errorf("%q is the same for all requests, want something such as {client.ip} in it", text)
	case 1:
		t.key = keys[0]
	default:
		t.key = ratelimit.ByAll(keys...)
	}
	return t, nil
}

func newPart(inner string) (part, error) {
	kind, name, named := strings.Cut(inner, ".")
	p := part{kind: kind, name: name}
	switch kind {
	case "client":
		if name == "ip" {
			return p, nil
		}
	case "header":
		if isToken(name) {
			p.name = textproto.CanonicalMIMEHeaderKey(name)
			return p, nil
		}
	case "cookie":
		if isToken(name) {
			return p, nil
		}
	case "query":
		if name != "" {
			return p, nil
		}
	case "host", "path", "method":
		if !named {
			return p, nil
		}
	}
	return part{}, fmt.Errorf("{%s} is unknown, want {client.ip}, {header.NAME}, {cookie.NAME}, {query.NAME}, {host}, {path} or {method}", inner)
}

// isToken tells whether headers and cookies can have that name (RFC 9110).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// keyFunc returns the function of what stands in braces.
func (p part) keyFunc(address ratelimit.KeyFunc) ratelimit.KeyFunc {
	switch p.kind {
	case "client":
		return address
	case "header":
		return ratelimit.ByHeader(p.name)
	default:
		missing := fmt.Errorf("%w: no %s %q", ratelimit.ErrNoKey, p.kind, p.name)
		return func(_ context.Context, r *http.Request) (string, error) {
			switch v := p.value(r); {
			case v == "":
				return "", missing
			case p.kind == "query", p.kind == "cookie": // it may be a credential
				sum := sha256.Sum256([]byte(v))
				return "sha256-" + base64.RawURLEncoding.EncodeToString(sum[:16]), nil
			default:
				return v, nil
			}
		}
	}
}

// value returns what the part is in a request, "" if it isn't there. It is not hashed.
func (p part) value(r *http.Request) string {
	switch p.kind {
	case "header":
		if lines := r.Header[p.name]; len(lines) == 1 { // of several, the upstream may read another
			return p.spelled(lines[0])
		}
		return ""
	case "cookie":
		if cookies := r.CookiesNamed(p.name); len(cookies) == 1 { // as with headers
			return p.spelled(cookies[0].Value)
		}
		return ""
	case "query":
		if values := r.URL.Query()[p.name]; len(values) == 1 { // as with headers
			return p.spelled(values[0])
		}
		return ""
	case "host":
		return hostOf(r)
	case "path":
		return cleaned(r)
	case "method":
		return r.Method
	default:
		return p.name
	}
}

// values returns all that the part is in a request: what an upstream may take it for.
func (p part) values(r *http.Request) (out []string) {
	switch p.kind {
	case "header":
		for _, line := range r.Header[p.name] {
			out = append(out, p.spelled(line))
		}
	case "cookie":
		for _, c := range r.CookiesNamed(p.name) {
			out = append(out, p.spelled(c.Value))
		}
	case "query":
		for _, v := range r.URL.Query()[p.name] {
			out = append(out, p.spelled(v))
		}
	default:
		out = []string{p.value(r)}
	}
	return out
}

// spelled makes credentials of an Authorization header that mean the same the same, as
// ratelimit.ByHeader does: the scheme's case and the spaces behind it mean nothing. It does
// so with query parameters, cookies, paths, and hosts, of which "" is none.
func (p part) spelled(value string) string {
	switch p.kind {
	case "host":
		host, _ := parseHost(value)
		return host
	case "path":
		return path.Clean("/" + value)
	case "cookie": // which many servers decode, and trim
		value = strings.TrimSpace(value)
		if decoded, err := url.PathUnescape(value); err == nil {
			return decoded
		}
		return value
	case "query": // not every server reads "+" as a space
		return strings.ReplaceAll(value, "+", " ")
	}
	if p.kind != "header" || p.name != "Authorization" {
		return value
	}
	scheme, rest, found := strings.Cut(value, " ")
	if !found {
		return strings.ToLower(scheme)
	}
	return strings.ToLower(scheme) + " " + strings.TrimLeft(rest, " ")
}

// spelled returns a value of the key as [template.value] has it.
func (t *template) spelled(value string) string {
	if len(t.parts) == 1 {
		return t.parts[0].spelled(value)
	}
	return value
}

// has reports whether the key has parts of a kind.
func (t *template) has(kind string) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.kind == kind })
}

// only returns the one part in braces, and whether it is the only one.
func (t *template) only() (p part, ok bool) {
	for _, q := range t.parts {
		switch {
		case q.kind == "":
		case ok:
			return part{}, false
		default:
			p, ok = q, true
		}
	}
	return p, ok
}

// isAddress tells whether the key is the client's address and nothing else.
func (t *template) isAddress() bool { return len(t.parts) == 1 && t.parts[0].kind == "client" }

// value returns the key in clear, to be compared with the values of a list.
func (t *template) value(r *http.Request, address string) string {
	if len(t.parts) == 1 && t.parts[0].kind != "client" {
		return t.parts[0].value(r)
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.kind == "client" {
			b.WriteString(address)
		} else {
			b.WriteString(p.value(r))
		}
	}
	return b.String()
}
