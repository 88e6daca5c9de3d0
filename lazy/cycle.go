package lazy

import (
	"slices"
	"strings"
)

// CycleError says that a value needs itself. Path names the values from the one
// that was asked for to itself again: user, org, user.
//
// It is found when the wait that would close the cycle begins. A function that
// asks for a value which needs its own is reported even if it asks from a
// goroutine that it does not wait for: which of the two comes first would be
// luck.
type CycleError struct {
	Path []string
}

func newCycleError(path []*Flight) *CycleError {
	names := make([]string, 0, len(path)+1)
	for _, f := range path {
		names = append(names, f.work.Name())
	}
	return &CycleError{Path: append(names, names[0])}
}

// Error joins the path with arrows.
func (c *CycleError) Error() string {
	return "lazy: cycle: " + strings.Join(c.Path, " -> ")
}

// pathTo returns the flights from f to target along their needs, both included,
// or nil. One lock is held at a time: no flight can take away a need that is
// part of a cycle, because all in it are blocked.
func (f *Flight) pathTo(target *Flight, seen map[*Flight]bool) []*Flight {
	if f == target {
		return []*Flight{f}
	}
	if seen[f] {
		return nil
	}
	f.mu.Lock()
	needs := slices.Clone(f.needs)
	f.mu.Unlock()
	if len(needs) == 0 {
		return nil
	}
	if seen == nil {
		seen = make(map[*Flight]bool)
	}
	seen[f] = true
	for _, n := range needs {
		if !n.inline && n.flight.over() {
			continue // f was woken and is about to take this need back
		}
		if rest := n.flight.pathTo(target, seen); rest != nil {
			return append([]*Flight{f}, rest...)
		}
	}
	return nil
}
