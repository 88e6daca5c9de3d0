package proxy

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// Servers read paths differently. None of these readings is wrong.
const (
	slashes     = 1 << iota // "%2F" separates segments
	backslashes             // so does "\"
	params                  // ";" ends the name of a segment
	authority               // "//host/path" names a host, and the path is "/path"
	paramsFirst             // ";" also hides what follows it and is decoded to "/"

	cleaned     = slashes | backslashes | params // the reading of rules
	allReadings = 2*paramsFirst - 1
)

// isAmbiguous reports whether servers may read a request's path differently.
func isAmbiguous(r *http.Request) bool {
	return r.URL.RawPath != "" || strings.ContainsAny(r.URL.Path, `;\`) || strings.HasPrefix(r.URL.Path, "//")
}

// cleanPath returns the path that rules and routes match and count by: decoded, without empty segments, and without
// parameters (";x=y") of segments.
func cleanPath(r *http.Request) string {
	if isAmbiguous(r) {
		return readPath(r.URL.EscapedPath(), cleaned)
	}
	p := r.URL.Path
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	return path.Clean(p)
}

// readPath returns one reading of an escaped path. A slash within a segment stays escaped, and empty segments are
// removed.
func readPath(escaped string, how int) string {
	var out []string
	first, host := true, false
	for segment := range strings.SplitSeq(strings.TrimPrefix(escaped, "/"), "/") {
		segment, _ = url.PathUnescape(segment) // net/http has checked it
		if how&slashes == 0 {
			segment = strings.ReplaceAll(segment, "/", "%2F")
		}
		if how&backslashes != 0 {
			segment = strings.ReplaceAll(segment, `\`, "/")
		}
		if how&paramsFirst != 0 {
			segment, _, _ = strings.Cut(segment, ";")
		}
		for name := range strings.SplitSeq(segment, "/") {
			if how&params != 0 {
				name, _, _ = strings.Cut(name, ";")
			}
			if first {
				first, host = false, name == "" && how&authority != 0
			}
			switch {
			case host:
				host = name == ""
			case name != "":
				out = append(out, name)
			}
		}
	}
	return "/" + strings.Join(out, "/")
}

// readsDifferently reports whether the upstream may read a request's path as one that rules and routes treat differently
// from path, which is their own reading.
func (g *generation) readsDifferently(r *http.Request, path string) bool {
	if !isAmbiguous(r) || len(g.pathMatches) == 0 && !g.pathCounts {
		return false
	}
	escaped := r.URL.EscapedPath()
	if g.pathCounts && readPath(escaped, cleaned|authority) != path {
		return true // each host would have a quota of its own
	}
	same := 0 // the bits that don't change this path
	if !strings.Contains(r.URL.Path, ";") {
		same |= params | paramsFirst
	}
	if !strings.Contains(r.URL.Path, `\`) {
		same |= backslashes
	}
	for how := range allReadings + 1 {
		if how&same != 0 {
			continue
		}
		other := readPath(escaped, how)
		if other == path {
			continue
		}
		if g.pathDecides || slices.ContainsFunc(g.pathMatches, func(m *config.Match) bool { return m.MatchesPath(other) != m.MatchesPath(path) }) {
			return true
		}
	}
	return false
}
