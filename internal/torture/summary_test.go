package torture_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// summary has the figures of all tests of the process, by fault. docs/reliability.md has those of a long run.
var summary struct {
	mu   sync.Mutex
	rows map[string]row
}

// row is how often a fault happened, what callers did meanwhile and until the next one, and what a check found.
type row struct {
	times, takes, requests, violations, excused int
	other                                       bool // it is no fault, and comes last
}

// tally adds to the row of a fault.
func tally(fault string, more row) {
	summary.mu.Lock()
	defer summary.mu.Unlock()
	if summary.rows == nil {
		summary.rows = make(map[string]row)
	}
	r := summary.rows[fault]
	summary.rows[fault] = row{
		r.times + more.times, r.takes + more.takes, r.requests + more.requests,
		r.violations + more.violations, r.excused + more.excused, more.other,
	}
}

// summarize returns the table in Markdown, or "" if there was nothing.
func summarize() string {
	var b strings.Builder
	for _, other := range []bool{false, true} {
		for _, fault := range slices.Sorted(maps.Keys(summary.rows)) {
			if r := summary.rows[fault]; r.other == other {
				fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", fault, r.times, r.takes, r.requests, r.violations, r.excused)
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "| Fault | How often | Takes | Requests with sessions | Violations | Excused |\n|---|---|---|---|---|---|\n" + b.String()
}

// tally adds an episode to the rows of its faults, or to the host's own row.
func (l *log) tally(h *host, violation error) {
	add := func(fault string, more row) {
		if h.row != "" {
			fault, more.other = h.row, true
		}
		tally(fault, more)
	}
	for _, o := range l.outages {
		add(o.name, row{times: 1})
	}
	for s, events := range l.events {
		for _, e := range events {
			add(faultAt(l.outages, e.Received), row{takes: 1})
		}
		if s.isMeter() {
			tally("meters", row{times: 1, takes: len(events), other: true})
		}
	}
	for _, e := range l.excused {
		add(faultAt(l.outages, e.Received), row{excused: 1})
	}
	if violation != nil {
		add(l.outages[len(l.outages)-1].name, row{violations: 1})
	}
}

// tallyRequests adds an episode with sessions to the rows of its faults.
func tallyRequests(requests []request, outages []outage, violation error) {
	for _, o := range outages {
		tally(o.name, row{times: 1})
	}
	for _, r := range requests {
		tally(faultAt(outages, r.received), row{requests: 1})
	}
	if violation != nil {
		tally(outages[len(outages)-1].name, row{violations: 1})
	}
}

// faultAt returns the name of the last fault that began before a time, or else of the first.
func faultAt(outages []outage, at int64) string {
	name := outages[0].name
	for _, o := range outages {
		if o.began <= at {
			name = o.name
		}
	}
	return name
}
