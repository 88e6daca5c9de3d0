package server

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Route describes a route of a [Server].
type Route struct {
	Pattern  string        // with the prefix of its group
	Requires []Requirement // in the order in which they are waited for
	Prefetch []Property
	// Lacks are requirements of groups that the route does not have, although it matches paths
	// below their prefix. A pattern for all paths, such as "/", lacks nothing.
	Lacks []Requirement
}

// Routes returns the routes in the order of their registration. Those of other routers are not among
// them. A test can check that no route lacks a requirement:
//
//	for r := range srv.Routes() {
//		require.Empty(t, r.Lacks, r.Pattern)
//	}
func (s *Server) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		s.routesMu.Lock()
		routes, groups := s.routes, s.groups
		s.routesMu.Unlock()
		for _, r := range routes {
			r.Requires, r.Prefetch = slices.Clone(r.Requires), slices.Clone(r.Prefetch)
			for _, g := range groups {
				if isBelow(g.prefix, r.Pattern) {
					r.lack(slices.Concat(g.option.require...))
				}
			}
			if !yield(r) {
				return
			}
		}
	}
}

// lack adds the items that r does not require to what it lacks. Items of an application's type may not
// be comparable, so their texts are compared.
func (r *Route) lack(items []Requirement) {
	text := func(r Requirement) string { return fmt.Sprintf("%T %v", r, r) }
	for _, item := range items {
		same := func(other Requirement) bool { return text(other) == text(item) }
		if !slices.ContainsFunc(r.Requires, same) && !slices.ContainsFunc(r.Lacks, same) {
			r.Lacks = append(r.Lacks, item)
		}
	}
}

// isBelow reports whether a route's pattern may match paths below the prefix of a group. A pattern for
// all paths, such as that of a front page, does not count.
func isBelow(prefix, pattern string) bool {
	_, pattern = cutMethod(pattern)
	groupHost, groupPath, _ := strings.Cut(prefix, "/")
	host, path, _ := strings.Cut(pattern, "/")
	if host != "" && groupHost != "" && host != groupHost {
		return false
	}
	want, have := strings.Split(groupPath, "/"), strings.Split(path, "/")
	want = want[:len(want)-1] // the prefix ends in a slash
	last := len(have) - 1
	switch subtree := have[last] == "" || strings.HasSuffix(have[last], "...}"); {
	case subtree && last == 0, !subtree && last < len(want):
		return false
	case subtree:
		have = have[:last]
	}
	for i := range min(len(want), len(have)) {
		if want[i] != have[i] && !strings.HasPrefix(want[i], "{") && !strings.HasPrefix(have[i], "{") {
			return false
		}
	}
	return true
}
