package inspect

import (
	"container/list"
	"strings"
	"time"
	"unsafe"
)

// latencies lists the upper bounds of the rings for ordinary requests. The last ring has no bound. Each ring of a
// route keeps its latest requests, so that many fast requests do not displace the few slow ones.
var latencies = [...]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}

const (
	maxRouteText = 200

	ringSize   = 10
	deniedRing = len(latencies) + 1
	failedRing = len(latencies) + 2
	rings      = len(latencies) + 3
)

// ring contains the latest records of one route with a similar outcome.
type ring struct {
	records [ringSize]*record
	next    int
	sampled int // requests in the second, recorded or not
	second  int64
}

// route holds the counts and rings of a route.
type route struct {
	routeSummary
	rings [rings]*ring // nil until a request belongs in it
	uses  []routeUse   // counts the properties that the handler resolves
}

// routeSize is about the size of a route with all its rings, without records.
const routeSize = int(unsafe.Sizeof(route{})) + rings*int(unsafe.Sizeof(ring{})) + maxRouteText/2 + 100

// otherRoutes replaces the names of routes that do not fit into the memory.
const otherRoutes = "(other routes)"

// noRoute names requests that no route has matched.
const noRoute = "(no route)"

// store contains the routes and records, in at most maxBytes of memory.
type store struct {
	maxBytes int
	bytes    int
	routes   map[string]*route
	byID     map[uint64]*record
	lastID   uint64
	records  list.List // of *record, the newest first
}

// route returns the route with this name. If there is none, it makes a new one.
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
	r := &route{routeSummary: routeSummary{Name: strings.Clone(name)}}
	s.routes[r.Name] = r
	s.bytes += routeSize
	return r
}

// ringFor returns the ring for a request.
func (r *route) ringFor(o outcome, took time.Duration) *ring {
	n := 0
	for n < len(latencies) && took >= latencies[n] {
		n++
	}
	if o.Denied {
		n = deniedRing
	}
	if o.Failed {
		n = failedRing
	}
	if r.rings[n] == nil {
		r.rings[n] = new(ring)
	}
	return r.rings[n]
}

// sample reports whether to record a request that has ended at now. It is false if the ring has had perSecond
// requests in this second.
func (in *ring) sample(now time.Time, perSecond int) bool {
	if unix := now.Unix(); unix != in.second {
		in.second, in.sampled = unix, 0
	}
	in.sampled++
	return in.sampled <= perSecond
}

// add replaces the oldest record of the ring with rec. Then it removes the oldest records of all rings until the
// store fits into maxBytes.
func (s *store) add(in *ring, rec *record) {
	if old := in.records[in.next]; old != nil {
		s.remove(old)
	}
	s.lastID++
	rec.ID, rec.ring, rec.slot = s.lastID, in, in.next
	in.records[in.next] = rec
	in.next = (in.next + 1) % ringSize

	const entries = 96 // about the size of the entries in byID and in records
	rec.size += entries
	s.byID[rec.ID] = rec
	s.bytes += rec.size
	rec.element = s.records.PushFront(rec)
	for s.bytes > s.maxBytes && s.records.Len() > 1 {
		s.remove(s.records.Back().Value.(*record))
	}
}

func (s *store) remove(rec *record) {
	rec.ring.records[rec.slot] = nil
	delete(s.byID, rec.ID)
	s.bytes -= rec.size
	s.records.Remove(rec.element)
}
