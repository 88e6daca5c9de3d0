package proxy

import (
	"net/http"
	"net/url"
	"regexp"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// normalize returns a request with body, if it is not nil, without the headers that are not passed on, and
// with a path that [url.URL.EscapedPath] returns as the client has sent it. It may return r itself.
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

// escapeInvalid escapes what a path can't contain (RFC 3986), besides brackets. For a path with such a
// character, [url.URL.EscapedPath] would decode the escapes of all others, such as %2F.
func escapeInvalid(rawPath string) string {
	return invalidInPath.ReplaceAllStringFunc(rawPath, url.PathEscape)
}

// forwardedHeaders returns the headers of r that are passed on by their names. HTTP/1.0 has no upgrades. It
// returns r.Header itself if those are all.
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
