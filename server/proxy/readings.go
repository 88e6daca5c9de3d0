package proxy

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// How servers differ in what they take a path for. None of them is wrong.
const (
	slashes     = 1 << iota // "%2F" separates segments
	backslashes             // so does "\"
	params                  // what follows ";" in a segment isn't the segment's name
	dots                    // "." and ".." are resolved
	everything  = slashes | backslashes | params | dots
)

// unclear reports whether servers can take a request's path for different ones.
func unclear(r *http.Request) bool {
	return r.URL.RawPath != "" || strings.ContainsAny(r.URL.Path, `;\`) || strings.Contains(r.URL.Path, "/.")
}

// cleaned returns the path that rules and routes match and count: decoded, without empty,
// "." and ".." segments and without parameters (";x=y") of segments.
func cleaned(r *http.Request) string {
	if unclear(r) {
		return reading(r.URL.EscapedPath(), everything)
	}
	p := r.URL.Path
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	return path.Clean(p)
}

// reading returns what a server takes an escaped path for. A slash inside of a segment stays
// escaped. No server tells segments apart by empty ones between them.
func reading(escaped string, how int) string {
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

// contested reports whether rules or routes take a request's path, which matches as at, for
// another one than the upstream may.
func (g *generation) contested(r *http.Request, at string) bool {
	if !unclear(r) {
		return false
	}
	escaped := r.URL.EscapedPath()
	for how := range everything {
		other := reading(escaped, how)
		if other == at {
			continue
		}
		if g.byPath || slices.ContainsFunc(g.matchers, func(m *matcher) bool { return m.holds(other) != m.holds(at) }) {
			return true
		}
	}
	return false
}

// watch notes what goes by paths.
func (g *generation) watch() {
	for _, r := range g.routes {
		g.matchers = append(g.matchers, r.match)
	}
	for _, r := range g.rules {
		g.matchers = append(g.matchers, r.match)
		for i := range r.tiers {
			g.matchers = append(g.matchers, r.tiers[i].match)
		}
		g.byPath = g.byPath || r.key.has("path") && (r.allow != nil || len(r.tiers) > 0)
	}
	g.matchers = slices.DeleteFunc(g.matchers, func(m *matcher) bool { return len(m.paths) == 0 })
}

// plainQuery reports whether servers agree on the parameters of a query. Some separate them
// by ";", too, net/http drops those that it can't decode, in C a name ends at NUL, and in a URL the
// query ends at "#".
func plainQuery(raw string) bool {
	_, err := url.ParseQuery(raw) // refuses ";"
	return err == nil && !strings.Contains(raw, "%00") && !strings.Contains(raw, "#")
}
