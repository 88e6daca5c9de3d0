package harness

import "slices"

// Metric is a quantity that is measured in each round.
type Metric struct {
	Name string
	Unit string
	// More means that a larger value is better, as for a throughput. Otherwise it is
	// a cost.
	More bool
	// Tail means that the metric is about the slowest calls. A short form has too few of
	// them, so that it gets no ratio for the metric.
	Tail bool
	// Exact means that the metric is a cost that the code determines, such as the number of
	// allocations. A short form must not exceed the stored cost.
	Exact bool
}

// Result is a contender's figure for one metric of one case.
type Result struct {
	Case      string  `json:"case"`
	Contender string  `json:"contender"`
	Metric    string  `json:"metric"`
	Median    float64 `json:"median"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Unit      string  `json:"unit"`
	// Ratio says how many times better we are than this contender. It is above 1 where we
	// are better, for costs and for throughputs alike. It is nil for ourselves, for a
	// contender with a note, for the tails of a short form, and where it cannot be computed.
	Ratio *float64 `json:"ratio"`
	// Best is the ratio of the best round of both. It is nil where Ratio is.
	Best *float64 `json:"best,omitempty"`
	// Least is the ratio that a short form must reach. The zero value means two thirds of
	// the stored ratio.
	Least float64 `json:"least,omitempty"`
	// Exact is that of the metric.
	Exact bool `json:"exact,omitempty"`
	// Note is the reason why the contender has no ratio, if there is one: "missing: …",
	// "wrong: …" for a wrong result, or "failed: …".
	Note string `json:"note,omitempty"`
}

// summary returns the median, the smallest and the largest of the samples.
func summary(samples []float64) (median, least, most float64) {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	median = s[n/2]
	if n%2 == 0 {
		median = (s[n/2-1] + s[n/2]) / 2
	}
	return median, s[0], s[n-1]
}

// addRatios compares r with ours, whose figures are zero if it has no such metric.
func (r *Result) addRatios(m Metric, ours Result) {
	if m.More {
		r.Ratio, r.Best = quotient(ours.Median, r.Median), quotient(ours.Max, r.Max)
	} else {
		r.Ratio, r.Best = quotient(r.Median, ours.Median), quotient(r.Min, ours.Min)
	}
}

// quotient returns nil if b is zero.
func quotient(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	q := a / b
	return &q
}
