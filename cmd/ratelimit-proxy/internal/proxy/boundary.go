package proxy

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxDecodings is how often servers behind the proxy may decode a path. There may be three of them, if two forward
// the request and one answers it.
const maxDecodings = 3

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// decode decodes the valid escapes of a path.
func decode(path string) string {
	return escape.ReplaceAllStringFunc(path, func(e string) string {
		c, _ := url.PathUnescape(e)
		return c
	})
}

// hasDotSegment reports whether a server may read a segment of a request's path as "." or "..". Clients resolve these
// segments before they send a request. Servers resolve them in different ways, and some of these lead above the path of the
// upstream's URL.
func hasDotSegment(r *http.Request) bool {
	p := r.URL.EscapedPath()
	if !strings.ContainsAny(p, ".%") {
		return false
	}
	for range maxDecodings + 1 {
		for name := range strings.FieldsFuncSeq(p, func(c rune) bool { return c == '/' || c == '\\' }) {
			if end := strings.IndexAny(name, ";?#\x00"); end >= 0 {
				name = name[:end]
			}
			if name = strings.TrimSpace(name); name == "." || name == ".." {
				return true
			}
		}
		if !strings.Contains(p, "%") {
			return false
		}
		p = decode(p)
	}
	return false
}
