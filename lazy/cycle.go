package lazy

import (
	"slices"
	"strings"
)

// CycleError is the error of a value that needs itself. Path has the names of the values on the cycle. It begins and
// ends with the value that was asked for: user, org, user.
//
// The wait that would close the cycle returns the error when it begins, even on a goroutine that the function does
// not wait for.
type CycleError struct {
	Path []string

	several bool // a computation on the path loads several keys, which may need different values
}

func newCycleError(path []*Flight) *CycleError {
	c := new(CycleError)
	for _, f := range path {
		c.Path = append(c.Path, f.work.Name())
		c.several = c.several || f.several
	}
	c.Path = append(c.Path, c.Path[0])
	return c
}

// isCycleOfSeveral reports whether err may be a false cycle: no key needs itself, but a call of several keys does.
func isCycleOfSeveral(err error) bool {
	c, ok := err.(*CycleError)
	return ok && c.several
}

// Error returns the path with arrows between the names.
func (c *CycleError) Error() string {
	return "lazy: cycle: " + strings.Join(c.Path, " -> ")
}

// waitEdge is one wait of a computation for another.
type waitEdge struct {
	flight *Flight
	// inline means that flight runs on the goroutine that waits for it. The wait then ends when flight returns, and not
	// when Set completes it.
	inline bool
}

func (f *Flight) addEdge(e waitEdge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.edges == nil {
		f.edges = f.buf[:0]
	}
	f.edges = append(f.edges, e)
}

func (f *Flight) removeEdge(e waitEdge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.edges, e)
	f.edges = slices.Delete(f.edges, i, i+1)
}

// pathTo returns the flights from f to target along their edges, both included, or nil. It locks one flight at a time,
// which is enough: the flights of a cycle are blocked, so none of them can remove its edge meanwhile.
func (f *Flight) pathTo(target *Flight, seen map[*Flight]bool) []*Flight {
	if f == target {
		return []*Flight{f}
	}
	if seen[f] {
		return nil
	}
	f.mu.Lock()
	edges := slices.Clone(f.edges)
	f.mu.Unlock()
	if len(edges) == 0 {
		return nil
	}
	if seen == nil {
		seen = make(map[*Flight]bool)
	}
	seen[f] = true
	for _, e := range edges {
		if !e.inline && e.flight.complete.Load() {
			continue // f has been woken and is about to remove this edge
		}
		if rest := e.flight.pathTo(target, seen); rest != nil {
			return append([]*Flight{f}, rest...)
		}
	}
	return nil
}
