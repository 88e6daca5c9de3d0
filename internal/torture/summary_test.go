package torture_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// summary holds the figures of all tests of the process, by fault. docs/reliability.md shows the figures of a long
// run.
var summary struct {
	mu   sync.Mutex
	rows map[string]row
}

// row holds how often a fault happened, and how many takes, requests, violations and excused takes there were from then
// until the next fault.
type row struct {
	times, takes, requests, violations, excused int
	other                                       bool // the row is not about a fault, and comes last
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

// summarize returns the table in Markdown, or "" if there are no figures.
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
	tallyOutages(h.row, l.outages, violation)
	for s, events := range l.events {
		for _, e := range events {
			tallyAt(h.row, l.outages, e.Received, row{takes: 1})
		}
		if s.isMeter() {
			tally("meters", row{times: 1, takes: len(events), other: true})
		}
	}
	for _, e := range l.excused {
		tallyAt(h.row, l.outages, e.Received, row{excused: 1})
	}
}

// tallyRequests adds an episode with sessions to the rows of its faults.
func tallyRequests(requests []request, outages []outage, violation error) {
	tallyOutages("", outages, violation)
	for _, r := range requests {
		tallyAt("", outages, r.received, row{requests: 1})
	}
}

// tallyOutages adds the faults of an episode. A violation counts for the last one.
func tallyOutages(own string, outages []outage, violation error) {
	for _, o := range outages {
		tallyAt(own, []outage{o}, o.began, row{times: 1})
	}
	if last := outages[len(outages)-1:]; violation != nil {
		tallyAt(own, last, last[0].began, row{violations: 1})
	}
}

// tallyAt adds to the row named own. If own is empty, it adds to the row of the last fault that began before a time, or of
// the first fault if no fault began before it.
func tallyAt(own string, outages []outage, at int64, more row) {
	name := outages[0].name
	for _, o := range outages {
		if o.began <= at {
			name = o.name
		}
	}
	if own != "" {
		name, more.other = own, true
	}
	tally(name, more)
}
