package proxy

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxDecodings is the number of times that servers behind the proxy may decode a path: two that forward the request, and
// one that answers it.
const maxDecodings = 3

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// decode decodes the valid escapes of a path.
func decode(path string) string {
	return escape.ReplaceAllStringFunc(path, func(e string) string {
		c, _ := url.PathUnescape(e)
		return c
	})
}

// leavesRoot reports whether a server may read a request's path as one that leads above its root, and so above the path of
// the upstream's URL. It uses the reading of each segment that leads up furthest.
func leavesRoot(r *http.Request) bool {
	if !strings.Contains(r.URL.Path, "..") && !strings.Contains(r.URL.Path, "%") {
		return false
	}
	depth := 0
	for segment := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
		net, lowest := 1, 0
		for range maxDecodings + 1 {
			before, _, _ := strings.Cut(segment, ";")
			for _, reading := range []string{segment, before} {
				n, l := descend(reading)
				net, lowest = min(net, n), min(lowest, l)
			}
			segment = decode(segment)
		}
		if depth+lowest < 0 {
			return true
		}
		depth += net
	}
	return false
}

// descend returns the number of levels that a segment leads down, and the lowest level on its way. Both are relative to
// the level where it begins. Slashes and backslashes in the segment separate names.
func descend(segment string) (depth, lowest int) {
	for name := range strings.FieldsFuncSeq(segment, func(c rune) bool { return c == '/' || c == '\\' }) {
		if end := strings.IndexAny(name, ";?#\x00"); end >= 0 {
			name = name[:end]
		}
		switch strings.TrimSpace(name) {
		case "", ".":
		case "..":
			depth--
			lowest = min(lowest, depth)
		default:
			depth++
		}
	}
	return depth, lowest
}
