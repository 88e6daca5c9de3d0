package faults

import (
	"fmt"
	"strings"
)

// ours begins the names of lazyreq's parts.
const ours = "lazyreq "

// table writes what was seen in Markdown, with a row for each fault.
func table(faults []fault, seen [][]string) string {
	var b strings.Builder
	b.WriteString("| Fault | lazyreq | Peers |\n|---|---|---|\n")
	for i, f := range faults {
		var lazyreq, peers cell
		for j, p := range f.programs {
			if name, ok := strings.CutPrefix(p.name, ours); ok {
				lazyreq.add(seen[i][j], name)
			} else {
				peers.add(seen[i][j], p.name)
			}
		}
		text := lazyreq.String()
		if len(lazyreq) == 1 { // all parts have the same result
			text = lazyreq[0].seen
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, text, peers)
	}
	return b.String()
}

// cell is a list of results, each with the programs that have it.
type cell []struct {
	seen     string
	programs string
}

func (c *cell) add(seen, program string) {
	for i := range *c {
		if (*c)[i].seen == seen {
			(*c)[i].programs += ", " + program
			return
		}
	}
	*c = append(*c, struct{ seen, programs string }{seen, program})
}

func (c cell) String() string {
	var parts []string
	for _, p := range c {
		parts = append(parts, p.seen+": "+p.programs)
	}
	return strings.Join(parts, "; ")
}
