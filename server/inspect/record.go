package inspect

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// These bound the texts of a record, in bytes.
const (
	maxErrorText = 300
	maxValueText = 120
	maxPathText  = 200
)

// record is one recorded request. It is immutable but for its place in the rings.
type record struct {
	id      uint64
	began   time.Time
	took    time.Duration
	method  string
	path    string // "" unless Options.Paths
	status  int
	written int64
	err     string
	outcome
	props     []property
	decisions []decision

	route        *route
	ring         *ring
	slot         int
	older, newer *record // in the list of all records
	size         int
}

// outcome is what a request counts as.
type outcome struct {
	Slow   bool `json:"slow,omitempty"`
	Failed bool `json:"failed,omitempty"`
	Denied bool `json:"denied,omitempty"`
}

// property is what a request did with a property. Durations are in milliseconds.
type property struct {
	Name   string  `json:"name"`
	State  string  `json:"state"`
	Start  float64 `json:"start"` // since the request began
	Took   float64 `json:"took"`
	Waited float64 `json:"waited,omitempty"`
	Asked  int     `json:"asked,omitempty"`
	By     string  `json:"by,omitempty"`
	Caller string  `json:"caller,omitempty"`
	Error  string  `json:"error,omitempty"`
	Value  string  `json:"value,omitempty"`
}

// decision is what a rule decided.
type decision struct {
	Quota      string  `json:"quota"`
	Rule       string  `json:"rule"`
	Allowed    bool    `json:"allowed"`
	Violated   bool    `json:"violated,omitempty"`
	Shadow     bool    `json:"shadow,omitempty"`
	Source     string  `json:"source"`
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	RetryAfter float64 `json:"retryAfter,omitempty"` // in milliseconds
}

// newRecord describes a request whose properties and decisions were read already.
func (in *Inspector) newRecord(c *reqctx.Context, info *server.RequestInfo, o outcome, props []named, decisions []ratelimit.Decision) *record {
	rec := &record{
		began: info.Began, took: info.Took, method: clip(info.Request.Method, 20), status: info.Status,
		written: info.Written, err: errorText(info.Err), outcome: o,
	}
	if in.opts.Paths {
		rec.path = clip(info.Request.URL.Path, maxPathText)
	}
	rec.size = int(unsafe.Sizeof(*rec)) + len(rec.method) + len(rec.path) + len(rec.err)
	rec.props = make([]property, len(props))
	for i := range props {
		rec.props[i] = in.newProperty(c, info.Began, &props[i])
		p := &rec.props[i]
		rec.size += int(unsafe.Sizeof(*p)) + len(p.Caller) + len(p.Error) + len(p.Value)
	}
	for i := range decisions {
		d := newDecision(&decisions[i])
		rec.decisions = append(rec.decisions, d)
		rec.size += int(unsafe.Sizeof(d)) + len(d.Quota) + len(d.Rule)
	}
	return rec
}

func (in *Inspector) newProperty(c *reqctx.Context, began time.Time, n *named) property {
	info := &n.info
	p := property{Name: n.name, State: info.State.String(), By: info.By, Asked: info.Asked}
	if info.State == reqctx.Unused {
		return p
	}
	if !info.Began.IsZero() { // a value that was set has no resolution
		p.Start, p.Took, p.Waited = millis(info.Began.Sub(began)), millis(info.Took), millis(info.Waited)
	}
	p.Caller = shortCaller(info.Caller())
	p.Error = errorText(info.Err)
	if in.shown[n.name] && (info.State == reqctx.Resolved || info.State == reqctx.Assigned) {
		if v, err := reqctx.Get(c, n.name); err == nil {
			p.Value = clip(fmt.Sprint(v), maxValueText)
		}
	}
	return p
}

func newDecision(d *ratelimit.Decision) decision {
	r := &d.Result
	return decision{
		Quota: d.Quota, Rule: ruleText(d.Rule), Allowed: r.Allowed, Violated: r.Violated,
		Shadow: r.Source == ratelimit.FromShadow, Source: r.Source.String(),
		Limit: r.Limit, Remaining: r.Remaining, RetryAfter: millis(min(r.RetryAfter, 1e6*time.Hour)),
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return clip(fmt.Sprint(err), maxErrorText) // Error may panic
}

// clip returns s in valid UTF-8, cut after about n bytes, in memory of its own.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.Clone(strings.ToValidUTF8(s, "�"))
}

// shortCaller cuts a file's name to its last folder.
func shortCaller(caller string) string {
	dir, file := filepath.Split(caller)
	if dir == "" {
		return clip(file, maxPathText)
	}
	return clip(filepath.Base(dir)+"/"+file, maxPathText)
}
