package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/server"
)

// maxListed is the maximum number of requests in a snapshot.
const maxListed = 100

// filter selects the requests of a snapshot. The zero value selects all.
type filter struct {
	route  string
	status int    // 2 means 200 to 299, and so on
	kind   string // "slow", "failed" or "denied"
}

func (f filter) match(rec *record) bool {
	if f.route != "" && rec.Route != f.route || f.status != 0 && rec.Status/100 != f.status {
		return false
	}
	switch f.kind {
	case "slow":
		return rec.Slow
	case "failed":
		return rec.Failed
	case "denied":
		return rec.Denied
	default:
		return true
	}
}

// snapshot is the data of the page. Durations are in milliseconds, and times in milliseconds since 1970.
type snapshot struct {
	Now        int64             `json:"now"`
	Since      int64             `json:"since"`
	SlowFrom   float64           `json:"slowFrom"`
	Strip      strip             `json:"strip"`
	Routes     []routeSummary    `json:"routes"`
	Properties []propertySummary `json:"properties"`
	Limiters   []quotaSummary    `json:"limiters"`
	Advice     []advice          `json:"advice"`
	Table      []routeRow        `json:"table"`
	Requests   []requestSummary  `json:"requests"` // the newest first
	Kept       int               `json:"kept"`
	Bytes      int               `json:"bytes"`
	MaxBytes   int               `json:"maxBytes"`
}

type routeSummary struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"`
	Failed   uint64 `json:"failed"`
	Denied   uint64 `json:"denied"`
}

type propertySummary struct {
	Name     string  `json:"name"`
	Requests uint64  `json:"requests"`
	Needed   uint64  `json:"needed"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	Failed   uint64  `json:"failed"`
	Saved    float64 `json:"saved"`
}

type quotaSummary struct {
	Name         string `json:"name"`
	Rule         string `json:"rule"`
	Limit        int64  `json:"limit"`
	Takes        uint64 `json:"takes"`
	Denied       uint64 `json:"denied"`
	ShadowTakes  uint64 `json:"shadowTakes"`
	ShadowDenied uint64 `json:"shadowDenied"`
	Failovers    uint64 `json:"failovers"`
}

type requestSummary struct {
	ID      uint64  `json:"id"`
	Began   int64   `json:"began"`
	Took    float64 `json:"took"`
	Route   string  `json:"route"`
	Method  string  `json:"method"`
	Path    string  `json:"path,omitempty"`
	Status  int     `json:"status"`
	Written int64   `json:"written"`
	Read    int     `json:"read"` // the number of properties that it has read or set
	outcome
}

// requestDetails is the data that the page shows when a request is opened.
type requestDetails struct {
	requestSummary
	Error      string     `json:"error,omitempty"`
	Properties []property `json:"properties"`
	Decisions  []decision `json:"decisions"`
}

func (in *Inspector) snapshot(f filter) *snapshot {
	now, table := time.Now(), in.routeTable()
	in.mu.Lock()
	defer in.mu.Unlock()
	s := &snapshot{
		Now: now.UnixMilli(), Since: in.since.UnixMilli(), SlowFrom: millis(in.opts.Slow), Strip: in.window.summary(now),
		Routes:     make([]routeSummary, 0, len(in.store.routes)),
		Properties: make([]propertySummary, 0, len(in.properties)),
		Limiters:   make([]quotaSummary, 0, len(in.quotas)),
		Advice:     []advice{},
		Table:      table,
		Requests:   make([]requestSummary, 0, maxListed),
		Kept:       len(in.store.byID), Bytes: in.store.bytes, MaxBytes: in.store.maxBytes,
	}
	for _, r := range in.store.routes {
		s.Routes = append(s.Routes, r.routeSummary)
		if a, gains := r.advice(); gains {
			s.Advice = append(s.Advice, a)
		}
	}
	slices.SortFunc(s.Advice, func(a, b advice) int { return cmp.Or(-cmp.Compare(a.Gain, b.Gain), cmp.Compare(a.Route, b.Route)) })
	slices.SortFunc(s.Routes, func(a, b routeSummary) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(in.properties)) {
		p := in.properties[name]
		s.Properties = append(s.Properties, propertySummary{Name: name, Requests: p.requests, Needed: p.needed, Failed: p.failed,
			P50: millis(p.took.quantile(.5)), P99: millis(p.took.quantile(.99)), Saved: millis(p.timeSaved())})
	}
	for name, stats := range in.quotas {
		q := stats.quotaSummary
		q.Name = name.String()
		s.Limiters = append(s.Limiters, q)
	}
	slices.SortFunc(s.Limiters, func(a, b quotaSummary) int { return cmp.Compare(a.Name, b.Name) })
	for e := in.store.records.Front(); e != nil && len(s.Requests) < maxListed; e = e.Next() {
		if rec := e.Value.(*record); f.match(rec) {
			s.Requests = append(s.Requests, rec.requestSummary)
		}
	}
	return s
}

// details returns a recorded request if it was not dropped.
func (in *Inspector) details(id uint64) (d requestDetails, found bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	rec := in.store.byID[id]
	if rec == nil {
		return d, false
	}
	return rec.requestDetails, true
}

// maxServers is the maximum number of servers whose routes are shown.
const maxServers = 16

// routeRow is a row of the table of routes.
type routeRow struct {
	Pattern  string   `json:"pattern"`
	Requires []string `json:"requires"`
	Prefetch []string `json:"prefetch"`
	Lacks    []string `json:"lacks"`
}

// addServer adds a server to those whose routes are shown. srv is nil if an observer has reported a request itself.
// in.mu is held.
func (in *Inspector) addServer(srv *server.Server) {
	if srv != nil && len(in.servers) < maxServers && !slices.Contains(in.servers, srv) {
		in.servers = append(in.servers, srv)
	}
}

// routeTable returns the routes of the servers that have had a request. It calls methods of the application's
// requirements, so in.mu must not be held.
func (in *Inspector) routeTable() []routeRow {
	in.mu.Lock()
	servers := in.servers // only appended to
	in.mu.Unlock()
	table := []routeRow{}
	for _, srv := range servers {
		for r := range srv.Routes() {
			table = append(table, routeRow{r.Pattern, texts(r.Requires), texts(r.Prefetch), texts(r.Lacks)})
		}
	}
	return table
}

func texts[T any](items []T) []string {
	list := make([]string, len(items))
	for i, item := range items {
		list[i] = fmt.Sprint(item)
	}
	return list
}
