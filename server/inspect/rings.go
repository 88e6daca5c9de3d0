package inspect

import (
	"strings"
	"time"
	"unsafe"
)

// latencies are the upper bounds of the rings for ordinary requests; one more ring has none. Each
// route keeps its latest requests of each ring, so that many fast ones don't displace the few
// slow ones.
var latencies = [...]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}

const (
	maxRouteText = 200

	ringSize   = 10
	deniedRing = len(latencies) + 1
	failedRing = len(latencies) + 2
	rings      = len(latencies) + 3
)

// ring has the latest records of one route that are alike.
type ring struct {
	records [ringSize]*record
	next    int
	sampled int // requests in the second, recorded or not
	second  int64
}

// route is one route's counts and rings.
type route struct {
	name                     string
	requests, failed, denied uint64
	rings                    [rings]*ring // nil until a request belongs in it
	uses                     []routeUse   // of the properties that it resolves
}

// routeSize is about what a route takes with all its rings, without records.
const routeSize = int(unsafe.Sizeof(route{})) + rings*int(unsafe.Sizeof(ring{})) + maxRouteText/2 + 100

// otherRoutes is the name for routes beyond the number that fits.
const otherRoutes = "(other routes)"

// noRoute is the name for requests that no route has matched.
const noRoute = "(no route)"

// store has the routes and the records, in no more memory than its maximum.
type store struct {
	maxBytes int
	bytes    int
	routes   map[string]*route
	byID     map[uint64]*record
	lastID   uint64

	oldest, newest *record
}

// route returns the route of that name, made if need be.
func (s *store) route(name string) *route {
	if name == "" {
		name = noRoute
	}
	name = name[:min(len(name), maxRouteText)]
	if r := s.routes[name]; r != nil {
		return r
	}
	const ofRoutes = 2 // routes get at most 1/ofRoutes of the memory
	if len(s.routes) >= s.maxBytes/ofRoutes/routeSize-1 && name != otherRoutes {
		return s.route(otherRoutes)
	}
	r := &route{name: strings.Clone(name)}
	s.routes[r.name] = r
	s.bytes += routeSize
	return r
}

// ringFor returns the ring that a request belongs in.
func (r *route) ringFor(o outcome, took time.Duration) *ring {
	n := ringIndex(o, took)
	if r.rings[n] == nil {
		r.rings[n] = new(ring)
	}
	return r.rings[n]
}

// sample reports whether to record another request: it would soon be displaced if there are many.
func (in *ring) sample(now time.Time, perSecond int) bool {
	if unix := now.Unix(); unix != in.second {
		in.second, in.sampled = unix, 0
	}
	in.sampled++
	return in.sampled <= perSecond
}

// ringIndex returns the number of the ring that a request belongs in.
func ringIndex(o outcome, took time.Duration) int {
	switch {
	case o.Failed:
		return failedRing
	case o.Denied:
		return deniedRing
	}
	for i, bound := range latencies {
		if took < bound {
			return i
		}
	}
	return len(latencies)
}

// add stores rec in place of the oldest of its ring, and drops the oldest of all records
// until the memory is enough.
func (s *store) add(r *route, rec *record) {
	in := r.ringFor(rec.outcome, rec.took)
	if old := in.records[in.next]; old != nil {
		s.remove(old)
	}
	s.lastID++
	rec.id, rec.route, rec.ring, rec.slot = s.lastID, r, in, in.next
	in.records[in.next] = rec
	in.next = (in.next + 1) % ringSize

	const mapEntry = 48 // about what byID takes for one
	rec.size += mapEntry
	s.byID[rec.id] = rec
	s.bytes += rec.size
	rec.older = s.newest
	if s.newest != nil {
		s.newest.newer = rec
	} else {
		s.oldest = rec
	}
	s.newest = rec
	for s.bytes > s.maxBytes && s.oldest != rec {
		s.remove(s.oldest)
	}
}

func (s *store) remove(rec *record) {
	rec.ring.records[rec.slot] = nil
	delete(s.byID, rec.id)
	s.bytes -= rec.size
	if rec.older != nil {
		rec.older.newer = rec.newer
	} else {
		s.oldest = rec.newer
	}
	if rec.newer != nil {
		rec.newer.older = rec.older
	} else {
		s.newest = rec.older
	}
	rec.older, rec.newer = nil, nil
}
