package inspect

import (
	"container/list"
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

// record is a recorded request. It does not change, except for its place in the rings and in the list.
type record struct {
	requestDetails
	route   *route
	ring    *ring
	slot    int
	element *list.Element // in the list of all records
	size    int
}

// outcome classifies a request.
type outcome struct {
	Slow   bool `json:"slow,omitempty"`
	Failed bool `json:"failed,omitempty"`
	Denied bool `json:"denied,omitempty"`
}

// property describes the use of a property by a request. Durations are in milliseconds.
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

// decision is the decision of a rule.
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

// newRecord describes a request with these properties and decisions.
func (in *Inspector) newRecord(c *reqctx.Context, info *server.RequestInfo, r *route, o outcome, props []named, decisions []ratelimit.Decision) *record {
	rec := &record{route: r, requestDetails: requestDetails{Error: errorText(info.Err), Properties: make([]property, len(props)), Decisions: []decision{}}}
	rec.requestSummary = requestSummary{
		Began: info.Began.UnixMilli(), Took: millis(info.Took), Route: r.Name, Method: clip(info.Request.Method, 20),
		Status: info.Status, Written: info.Written, outcome: o,
	}
	if in.opts.Paths {
		rec.Path = clip(info.Request.URL.Path, maxPathText)
	}
	rec.size = int(unsafe.Sizeof(*rec)) + len(rec.Method) + len(rec.Path) + len(rec.Error)
	for i := range props {
		p := in.newProperty(c, info.Began, &props[i])
		rec.Properties[i] = p
		rec.size += int(unsafe.Sizeof(p)) + len(p.Caller) + len(p.Error) + len(p.Value)
		if props[i].info.State != reqctx.Unused {
			rec.Read++
		}
	}
	for i := range decisions {
		d := newDecision(&decisions[i])
		rec.Decisions = append(rec.Decisions, d)
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
	if !info.Began.IsZero() { // values that were set have no resolution
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
		Quota: quota{d.Policy, d.Rule.Name()}.String(), Rule: ruleText(d.Rule), Allowed: r.Allowed, Violated: r.Violated,
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

// clip returns s as valid UTF-8, cut after about n bytes. The result has its own memory.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.Clone(strings.ToValidUTF8(s, "�"))
}

// shortCaller keeps only the last folder of a file's name.
func shortCaller(caller string) string {
	dir, file := filepath.Split(caller)
	if dir == "" {
		return clip(file, maxPathText)
	}
	return clip(filepath.Base(dir)+"/"+file, maxPathText)
}
