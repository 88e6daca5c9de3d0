package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/lazyreq/lazyreq/reqctx"
)

const (
	maxRouteUses  = 12 // properties that are counted for a route
	adviceFrom    = 20 // requests of a route
	adviceShare   = .9 // of a route's requests that read a property
	adviceMinGain = 200 * time.Microsecond
)

// routeUse counts what the requests of a route did with one property.
type routeUse struct {
	name       string
	marked     bool   // with Prop.Prefetch
	read       uint64 // by the handler itself, and resolved
	took       time.Duration
	alone      time.Duration // of took, while no property read before was being resolved
	prefetched uint64
	unread     uint64
	failed     uint64 // unread and failed
}

// addUses counts a request's properties. It reports how many bytes were allocated for it.
func (r *route) addUses(props []named) (size int) {
	var buf [16]int
	used := buf[:0] // the places of the properties, in the order in which their resolutions began
	for i := range props {
		info := &props[i].info
		if !info.Prefetched && info.State != reqctx.Resolved && info.State != reqctx.Failed {
			continue
		}
		at := len(used)
		for at > 0 && info.Began.Before(props[used[at-1]].info.Began) {
			at--
		}
		used = slices.Insert(used, at, i)
	}
	var until time.Time // when the properties so far were resolved
	for _, i := range used {
		p := &props[i]
		u := r.use(p.name)
		if u == nil {
			if len(r.uses) == maxRouteUses {
				continue
			}
			r.uses = append(r.uses, routeUse{name: strings.Clone(p.name)})
			u = &r.uses[len(r.uses)-1]
			size += int(unsafe.Sizeof(*u)) + len(p.name)
		}
		u.add(&p.info, &until)
	}
	return size
}

func (r *route) use(name string) *routeUse {
	for i := range r.uses {
		if r.uses[i].name == name {
			return &r.uses[i]
		}
	}
	return nil
}

// add counts one request. until is the end of the resolutions before.
func (u *routeUse) add(info *reqctx.Info, until *time.Time) {
	u.marked = info.CanPrefetch
	if info.Prefetched {
		u.prefetched++
	}
	if info.Unread {
		u.unread++
		if info.State == reqctx.Failed {
			u.failed++
		}
		return
	}
	if info.By != "" || info.Began.IsZero() {
		return
	}
	u.read++
	u.took += info.Took
	end := info.Began.Add(info.Took)
	if begin := info.Began; begin.After(*until) {
		u.alone += info.Took
	} else if end.After(*until) {
		u.alone += end.Sub(*until)
	}
	if end.After(*until) {
		*until = end
	}
}

// prefetchSummary is a property that a route prefetches.
type prefetchSummary struct {
	Route      string `json:"route"`
	Property   string `json:"property"`
	Prefetched uint64 `json:"prefetched"`
	Unread     uint64 `json:"unread"`
	Failed     uint64 `json:"failed"` // of those unread
}

// advice is a route that would gain from Prefetch.
type advice struct {
	Route    string   `json:"route"`
	Prefetch []string `json:"prefetch"`           // the arguments of server.Prefetch
	Unmarked []string `json:"unmarked,omitempty"` // those that have to be marked with Prop.Prefetch first
	Gain     float64  `json:"gain"`               // of a request, in milliseconds, at most
}

// prefetches returns what the route prefetches.
func (r *route) prefetches() (list []prefetchSummary) {
	for i := range r.uses {
		if u := &r.uses[i]; u.prefetched > 0 {
			list = append(list, prefetchSummary{r.name, u.name, u.prefetched, u.unread, u.failed})
		}
	}
	return list
}

// advice reports whether nearly every request of the route has resolved several properties one
// after another that could be prefetched, and which. What it gains is the time of all less that
// of the longest; it is less if one of them reads another.
func (r *route) advice() (a advice, gains bool) {
	if r.requests < adviceFrom || r.name == noRoute || r.name == otherRoutes {
		return a, false
	}
	a.Route = r.name
	var sum, longest time.Duration
	for i := range r.uses {
		u := &r.uses[i]
		if float64(u.read) < adviceShare*float64(r.requests) || !prefetchable(u) {
			continue
		}
		a.Prefetch = append(a.Prefetch, argument(u.name))
		if !u.marked {
			a.Unmarked = append(a.Unmarked, argument(u.name))
		}
		sum += u.alone / time.Duration(r.requests)
		longest = max(longest, u.took/time.Duration(u.read))
	}
	a.Gain = millis(sum - longest)
	return a, sum-longest >= adviceMinGain && len(a.Prefetch) > 1
}

// prefetchable reports whether a property is or could be marked: the library's own that are
// not marked charge or read the body.
func prefetchable(u *routeUse) bool {
	return u.marked || !strings.HasPrefix(u.name, "ratelimit.") && !strings.HasPrefix(u.name, "params.")
}

// argument returns the name of a property for server.Prefetch.
func argument(name string) string {
	if name == "session.load" {
		return "session"
	}
	return name
}

// sortPrefetches sorts what routes prefetch, and the advice by what it gains.
func (s *snapshot) sortPrefetches() {
	slices.SortStableFunc(s.Prefetches, func(a, b prefetchSummary) int {
		return cmp.Or(cmp.Compare(a.Route, b.Route), cmp.Compare(a.Property, b.Property))
	})
	slices.SortStableFunc(s.Advice, func(a, b advice) int {
		return cmp.Or(-cmp.Compare(a.Gain, b.Gain), cmp.Compare(a.Route, b.Route))
	})
}
