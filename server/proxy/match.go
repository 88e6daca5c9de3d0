package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"path"
	"slices"
	"strings"
)

// matcher is a [Match] that was checked.
type matcher struct {
	methods []string
	hosts   []string
	paths   []pattern
	headers []headerMatch
}

type headerMatch struct{ name, value string }

func newMatcher(m Match, field string, f *faults) *matcher {
	out := &matcher{methods: m.Methods}
	for i, method := range m.Methods {
		if method == "" || method != strings.ToUpper(method) {
			f.addf(fmt.Sprintf("%s.methods[%d]", field, i), "%q is no method, want one such as GET", method)
		}
	}
	for i, host := range m.Hosts {
		base, below := strings.CutPrefix(host, "*.")
		name, ok := parseHost(base)
		if !ok || strings.LastIndexByte(base, ':') > strings.LastIndexByte(base, ']') {
			f.addf(fmt.Sprintf("%s.hosts[%d]", field, i), "%q is no host without port, want one such as example.com or *.example.com", host)
		}
		if below {
			name = "*." + name
		}
		out.hosts = append(out.hosts, name)
	}
	for i, p := range m.Paths {
		pat, err := newPattern(p)
		if err != nil {
			f.add(fmt.Sprintf("%s.paths[%d]", field, i), err)
		}
		out.paths = append(out.paths, pat)
	}
	for name, value := range m.Headers {
		if !isToken(name) {
			f.addf(field+".headers", "%q is no header's name", name)
		}
		out.headers = append(out.headers, headerMatch{textproto.CanonicalMIMEHeaderKey(name), value})
	}
	return out
}

// matches tells whether r meets the condition. at is the path that is meant, see [cleaned].
func (m *matcher) matches(r *http.Request, at string) bool {
	if len(m.methods) > 0 && !slices.Contains(m.methods, r.Method) {
		return false
	}
	if len(m.hosts) > 0 {
		host := hostOf(r)
		if !slices.ContainsFunc(m.hosts, func(h string) bool { return hostMatches(h, host) }) {
			return false
		}
	}
	if !m.holds(at) {
		return false
	}
	for _, h := range m.headers {
		values := r.Header[h.name]
		if h.value == "*" && len(values) > 0 {
			continue
		}
		if !slices.Contains(values, h.value) {
			return false
		}
	}
	return true
}

// holds reports whether a path meets the condition.
func (m *matcher) holds(at string) bool {
	return len(m.paths) == 0 || slices.ContainsFunc(m.paths, func(p pattern) bool { return p.matches(at) })
}

func hostMatches(want, host string) bool {
	if suffix, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return want == host
}

// pattern is a path pattern by its segments.
type pattern struct {
	segments []string
	deep     bool // "**" is at the end
}

func newPattern(p string) (pattern, error) {
	if p == "" || p[0] != '/' {
		return pattern{}, fmt.Errorf("%q is no path pattern: it has to begin with /", p)
	}
	if path.Clean(p) != p && path.Clean(p)+"/" != p {
		return pattern{}, fmt.Errorf("%q never matches: paths are matched in their shortest form, %q", p, path.Clean(p))
	}
	if strings.ContainsAny(p, `;\`) {
		return pattern{}, fmt.Errorf("%q never matches: parameters of segments are left out, and a backslash is a slash", p)
	}
	var out pattern
	out.segments = strings.Split(strings.Trim(p, "/"), "/")
	if last := len(out.segments) - 1; out.segments[last] == "**" {
		out.segments, out.deep = out.segments[:last], true
	} else if out.segments[0] == "" {
		out.segments = nil // "/"
	}
	for _, s := range out.segments {
		if strings.Contains(s, "*") && s != "*" {
			return pattern{}, errors.New(`"*" is a whole segment, and "**" only the last one`)
		}
	}
	return out, nil
}

func (p pattern) matches(at string) bool {
	rest := strings.TrimPrefix(at, "/")
	for _, want := range p.segments {
		if rest == "" {
			return false
		}
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		if want != "*" && want != segment {
			return false
		}
	}
	return rest == "" || p.deep
}
