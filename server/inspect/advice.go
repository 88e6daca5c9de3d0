package inspect

import (
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/lazyreq/lazyreq/reqctx"
)

const (
	maxRouteUses  = 12 // the maximum number of properties that are counted for a route
	adviceFrom    = 20 // the minimum number of requests of the route
	adviceShare   = .9 // the minimum share of requests that read the property
	adviceMinGain = 200 * time.Microsecond
)

// routeUse counts how often a route's handler has resolved one property that could be prefetched.
type routeUse struct {
	name  string
	read  uint64
	took  time.Duration
	alone time.Duration // the part of took in which no earlier property was being resolved
}

// addUses counts the properties of a request. It returns the number of bytes that it has allocated.
func (r *route) addUses(props []named) (size int) {
	var buf [16]*named
	var until time.Time // the end of all resolutions so far
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
		n := slices.IndexFunc(r.uses, func(u routeUse) bool { return u.name == p.name })
		if n < 0 {
			if n = len(r.uses); n == maxRouteUses {
				continue
			}
			r.uses = append(r.uses, routeUse{name: strings.Clone(p.name)})
			size += int(unsafe.Sizeof(r.uses[n])) + len(p.name)
		}
		u := &r.uses[n]
		u.read++
		u.took += p.info.Took
		u.alone += max(end.Sub(begin), 0)
	}
	return size
}

// readByHandler appends the properties that were resolved and that no other property has read first, in the order of
// their resolution.
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

// advice is the suggestion to prefetch properties of a route.
type advice struct {
	Route    string   `json:"route"`
	Prefetch []string `json:"prefetch"` // the arguments of server.Prefetch
	Gain     float64  `json:"gain"`     // the maximum gain for a request, in milliseconds
}

// advice reports whether nearly every request of the route has resolved several properties one after another that
// could be prefetched. The gain is the sum of their durations minus the longest. It is less if one of them reads
// another.
func (r *route) advice() (a advice, gains bool) {
	if r.Requests < adviceFrom || r.Name == noRoute || r.Name == otherRoutes {
		return a, false
	}
	a.Route = r.Name
	var sum, longest time.Duration
	for i := range r.uses {
		u := &r.uses[i]
		if float64(u.read) < adviceShare*float64(r.Requests) {
			continue
		}
		a.Prefetch = append(a.Prefetch, u.name)
		sum += u.alone / time.Duration(r.Requests)
		longest = max(longest, u.took/time.Duration(u.read))
	}
	a.Gain = millis(sum - longest)
	return a, sum-longest >= adviceMinGain && len(a.Prefetch) > 1
}
