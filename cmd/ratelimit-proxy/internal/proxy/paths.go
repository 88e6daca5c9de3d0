package proxy

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// These flags say how a server reads paths. Servers differ, and none of the readings is wrong.
const (
	slashes     = 1 << iota // "%2F" separates segments
	backslashes             // so does "\"
	params                  // ";" ends the name of a segment
	authority               // "//host/path" names a host, and the path is "/path"
	paramsFirst             // everything after ";" is removed before "%2F" is decoded

	cleaned     = slashes | backslashes | params // the reading of rules
	allReadings = 2*paramsFirst - 1
)

// isAmbiguous reports whether servers may read a request's path differently.
func isAmbiguous(r *http.Request) bool {
	return r.URL.RawPath != "" || strings.ContainsAny(r.URL.Path, `;\`) || strings.HasPrefix(r.URL.Path, "//")
}

// cleanPath returns a request's path in the form that rules and routes use: decoded, without empty segments, and
// without parameters (";x=y").
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

// readPath returns the path that a server reads with the flags how. Empty segments are removed. If "%2F" does not
// separate segments, it stays escaped.
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

// readsDifferently reports whether an upstream may read another path in a request than rules and routes do, and they
// would treat that path differently. path is the result of [cleanPath].
func (g *generation) readsDifferently(r *http.Request, path string) bool {
	if !isAmbiguous(r) || len(g.pathMatches) == 0 && !g.pathCounts {
		return false
	}
	escaped := r.URL.EscapedPath()
	if g.pathCounts && readPath(escaped, cleaned|authority) != path {
		return true // otherwise, clients could make up hosts, and get a new quota for each
	}
	same := 0 // flags that make no difference for this path
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
