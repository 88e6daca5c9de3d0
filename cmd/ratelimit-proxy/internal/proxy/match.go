package proxy

import (
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// matches reports whether r matches m. path must be the result of [cleanPath] for r.
func matches(m *config.Match, r *http.Request, path string) bool {
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, r.Method) {
		return false
	}
	if len(m.Hosts) > 0 && !m.MatchesHost(hostOf(r)) || !m.MatchesPath(path) {
		return false
	}
	for name, value := range m.Headers {
		part := config.KeyPart{Kind: "header", Name: name}
		if !slices.ContainsFunc(r.Header[name], func(v string) bool { return value == "*" || value == part.Normalize(v) }) {
			return false
		}
	}
	return true
}

// hasPaddedValue reports whether the value of a header begins or ends with a space. HTTP/2 forbids such spaces, but
// net/http accepts them.
func hasPaddedValue(h http.Header) bool {
	for _, values := range h {
		for _, v := range values {
			if v != textproto.TrimString(v) {
				return true
			}
		}
	}
	return false
}

// hasHost reports whether a request has exactly one host, and it is valid. An HTTP/2 request may have both :authority
// and Host.
func hasHost(r *http.Request) bool {
	host, ok := config.ParseHost(r.Host)
	for _, line := range r.Header["Host"] {
		other, _ := config.ParseHost(line)
		ok = ok && other == host
	}
	return ok
}

// hostOf returns the host of a request, as [config.ParseHost] returns it.
func hostOf(r *http.Request) string {
	host, _ := config.ParseHost(r.Host)
	return host
}

// normalize returns r without the headers that are not forwarded, and with the given body unless that is nil. In the
// result, [url.URL.EscapedPath] returns the path that the client has sent. If nothing changes, normalize returns r
// itself.
func normalize(r *http.Request, body *requestBody, underscores bool) *http.Request {
	h, rawPath := forwardedHeaders(r, underscores), escapeInvalid(r.URL.RawPath)
	if body == nil && len(h) == len(r.Header) && rawPath == r.URL.RawPath {
		return r
	}
	out := *r
	out.Header = h
	if body != nil {
		out.Body = body
	}
	if rawPath != r.URL.RawPath {
		u := *r.URL
		u.RawPath = rawPath
		out.URL = &u
	}
	return &out
}

var invalidInPath = regexp.MustCompile(`[^A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]%]+`)

// escapeInvalid escapes the characters that a path can't contain (RFC 3986), except for brackets. If a path had such
// characters, [url.URL.EscapedPath] would decode escapes such as %2F.
func escapeInvalid(rawPath string) string {
	return invalidInPath.ReplaceAllStringFunc(rawPath, url.PathEscape)
}

// forwardedHeaders returns r.Header without the headers whose names are not forwarded, and without Upgrade in
// HTTP/1.0. If nothing changes, it returns r.Header itself.
func forwardedHeaders(r *http.Request, underscores bool) http.Header {
	out := r.Header
	for name := range r.Header {
		if config.ForwardedName(name, underscores) && (name != "Upgrade" || r.ProtoAtLeast(1, 1)) {
			continue
		}
		if len(out) == len(r.Header) {
			out = r.Header.Clone()
		}
		delete(out, name)
	}
	return out
}
