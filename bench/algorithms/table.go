package algorithms

import (
	"fmt"
	"strings"
	"time"
)

// tables returns the figures in Markdown, as the document has them.
func (r report) tables() string { return r.overTable() + "\n" + r.strictTable() }

func (r report) overTable() string {
	var b strings.Builder
	b.WriteString("| 100 in 60 s | in 1 s | in 60 s | in 61 s |\n|---|---|---|---|\n")
	for _, o := range r.over {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", o.name, o.maxInWindow(time.Second), o.maxInWindow(Per), o.maxInWindow(Per+time.Second))
	}
	return b.String()
}

func (r report) strictTable() string {
	var b strings.Builder
	b.WriteString("| 100 in 60 s | patient, in 60 s | longest pause | 100 evenly | 90 at random | 90 by tens |\n|---|---|---|---|---|---|\n")
	for _, s := range r.strict {
		fmt.Fprintf(&b, "| %s | %.1f | %s | %s | %s | %s |\n", s.name, s.patient, s.pause.Round(100*time.Millisecond),
			s.clientShare(evenly, 1), s.clientShare(chance, 0.9), s.clientShare(bunched, 0.9))
	}
	return b.String()
}

// clientShare returns an honest client's share in words.
func (s strict) clientShare(client string, load float64) string {
	for i, l := range clientLoads() {
		if l == load {
			return fmt.Sprintf("%.1f %%", 100*s.shares[client][i])
		}
	}
	return ""
}
