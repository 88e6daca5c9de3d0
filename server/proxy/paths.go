package proxy

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/server/proxy/config"
)

// Servers differ in how they read a path. None of these readings is wrong.
const (
	slashes     = 1 << iota // "%2F" separates segments
	backslashes             // so does "\"
	params                  // ";" ends the name of a segment
	dots                    // "." and ".." are resolved
	authority               // "//host/path" names a host, and the path is "/path"

	cleaned     = slashes | backslashes | params | dots // what rules match
	allReadings = cleaned | authority
)

// isAmbiguous reports whether servers may read a request's path differently.
func isAmbiguous(r *http.Request) bool {
	return r.URL.RawPath != "" || strings.ContainsAny(r.URL.Path, `;\`) || strings.Contains(r.URL.Path, "/.") ||
		strings.HasPrefix(r.URL.Path, "//")
}

// cleanPath returns the path that rules and routes match and count: decoded, without empty,
// "." and ".." segments and without parameters (";x=y") of segments.
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

// readPath returns how a server reads an escaped path. A slash within a segment stays escaped.
// Empty segments never count.
func readPath(escaped string, how int) string {
	if rest, ok := strings.CutPrefix(escaped, "//"); ok && how&authority != 0 {
		_, escaped, _ = strings.Cut(rest, "/")
	}
	var out []string
	for segment := range strings.SplitSeq(escaped, "/") {
		segment, _ = url.PathUnescape(segment) // as net/http could
		if how&slashes == 0 {
			segment = strings.ReplaceAll(segment, "/", "%2F")
		}
		if how&backslashes != 0 {
			segment = strings.ReplaceAll(segment, `\`, "/")
		}
		for name := range strings.SplitSeq(segment, "/") {
			if how&params != 0 {
				name, _, _ = strings.Cut(name, ";")
			}
			switch {
			case name == "", how&dots != 0 && name == ".":
			case how&dots != 0 && name == "..":
				out = out[:max(0, len(out)-1)]
			default:
				out = append(out, name)
			}
		}
	}
	return "/" + strings.Join(out, "/")
}

// readsDifferently reports whether the upstream may read a request's path, which rules and
// routes read as path, as one that they would treat differently.
func (g *generation) readsDifferently(r *http.Request, path string) bool {
	if !isAmbiguous(r) {
		return false
	}
	escaped := r.URL.EscapedPath()
	for how := range allReadings + 1 {
		other := readPath(escaped, how)
		if other == path {
			continue
		}
		if g.pathDecides || slices.ContainsFunc(g.pathMatches, func(m *config.Match) bool { return matchesPath(m, other) != matchesPath(m, path) }) {
			return true
		}
	}
	return false
}

// isPlainQuery reports whether servers agree on the parameters of a query. Some of them also
// separate parameters by ";", net/http drops those that it can't decode, a name ends at NUL in
// C, and a URL's query ends at "#".
func isPlainQuery(raw string) bool {
	_, err := url.ParseQuery(raw) // refuses ";"
	return err == nil && !strings.Contains(raw, "%00") && !strings.Contains(raw, "#")
}
