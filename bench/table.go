package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

var (
	header  = []string{"case", "metric", "contender", "median", "min", "max", "unit", "ratio", "best", "note"}
	numbers = []int{3, 4, 5, 7, 8} // columns that are aligned to the right
)

// writeTable writes the results as a table, with an empty line between cases.
func writeTable(w io.Writer, rec record.Record) error {
	rows := [][]string{slices.Clone(header)}
	for i, r := range rec.Results {
		if i == 0 || r.Case != rec.Results[i-1].Case {
			rows = append(rows, make([]string, len(header)))
		}
		rows = append(rows, row(r))
	}
	pad(rows)
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %s\n%s\n", rec.Suite, rec.About, rec.Source())
	for line := range strings.Lines(b.String()) {
		text += strings.TrimRight(line, " \n") + "\n"
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

func row(r harness.Result) []string {
	median, least, most := number(r.Median), number(r.Min), number(r.Max)
	if r.Note != "" && r.Max == 0 { // nothing was measured
		median, least, most = "–", "–", "–"
	}
	return []string{r.Case, r.Metric, r.Contender, median, least, most, r.Unit, times(r.Ratio), times(r.Best), r.Note}
}

// times writes a ratio, if there is one.
func times(ratio *float64) string {
	if ratio == nil {
		return ""
	}
	return strconv.FormatFloat(*ratio, 'f', 2, 64)
}

// pad aligns the columns of numbers to the right.
func pad(rows [][]string) {
	for _, col := range numbers {
		width := 0
		for _, r := range rows {
			width = max(width, utf8.RuneCountInString(r[col]))
		}
		for _, r := range rows {
			r[col] = strings.Repeat(" ", width-utf8.RuneCountInString(r[col])) + r[col]
		}
	}
}

// number writes a value with about four digits.
func number(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 1000 && v != math.Trunc(v) {
		digits = min(3, 3-int(math.Floor(math.Log10(max(a, 1)))))
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
