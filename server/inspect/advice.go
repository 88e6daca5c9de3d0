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

// routeUse counts how often the handler of a route has resolved one property, which could be
// prefetched.
type routeUse struct {
	name  string
	read  uint64
	took  time.Duration
	alone time.Duration // of took, while no property read before was being resolved
}

// addUses counts a request's properties. It returns how many bytes were allocated for it.
func (r *route) addUses(props []named) (size int) {
	var buf [16]*named
	var until time.Time // when the properties so far were resolved
	for _, p := range readByHandler(buf[:0], props) {
		begin, end := p.info.Began, p.info.Began.Add(p.info.Took)
		if begin.Before(until) {
			begin = until
		}
		if end.After(until) {
			until = end
		}
		if p.info.Private {
			continue
		}
		u := r.use(p.name)
		if u == nil {
			if len(r.uses) == maxRouteUses {
				continue
			}
			r.uses = append(r.uses, routeUse{name: strings.Clone(p.name)})
			u = &r.uses[len(r.uses)-1]
			size += int(unsafe.Sizeof(*u)) + len(p.name)
		}
		u.read++
		u.took += p.info.Took
		u.alone += max(end.Sub(begin), 0)
	}
	return size
}

// readByHandler appends the properties that no other property has read first and that were resolved,
// in the order in which that began.
func readByHandler(list []*named, props []named) []*named {
	for i := range props {
		info := &props[i].info
		if info.By != "" || info.State != reqctx.Resolved && info.State != reqctx.Failed {
			continue
		}
		at := len(list)
		for at > 0 && info.Began.Before(list[at-1].info.Began) {
			at--
		}
		list = slices.Insert(list, at, &props[i])
	}
	return list
}

func (r *route) use(name string) *routeUse {
	for i := range r.uses {
		if r.uses[i].name == name {
			return &r.uses[i]
		}
	}
	return nil
}

// advice is a route that would gain from Prefetch.
type advice struct {
	Route    string   `json:"route"`
	Prefetch []string `json:"prefetch"` // the arguments of server.Prefetch
	Gain     float64  `json:"gain"`     // of a request, in milliseconds, at most
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
		if float64(u.read) < adviceShare*float64(r.requests) {
			continue
		}
		a.Prefetch = append(a.Prefetch, u.name)
		sum += u.alone / time.Duration(r.requests)
		longest = max(longest, u.took/time.Duration(u.read))
	}
	a.Gain = millis(sum - longest)
	return a, sum-longest >= adviceMinGain && len(a.Prefetch) > 1
}

// sortAdvice sorts by the gain, the largest first.
func sortAdvice(list []advice) {
	slices.SortFunc(list, func(a, b advice) int {
		return cmp.Or(-cmp.Compare(a.Gain, b.Gain), cmp.Compare(a.Route, b.Route))
	})
}
