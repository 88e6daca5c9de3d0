package harness

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Metric is something that is measured in each round.
type Metric struct {
	Name string
	Unit string
	// More means that a larger value is better, as for a throughput. Otherwise it is
	// a cost.
	More bool
}

// Result is what one contender came to in one metric of one case. Its JSON is a line
// of the published results.
type Result struct {
	Suite     string  `json:"suite"`
	Case      string  `json:"case"`
	Contender string  `json:"contender"`
	Metric    string  `json:"metric"`
	Median    float64 `json:"median"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Unit      string  `json:"unit"`
	// Ratio is how many times better we are than this contender, above 1 for
	// costs and for throughputs alike; nil for ourselves, and where nothing was
	// measured.
	Ratio *float64 `json:"ratio"`
	// Note is what is wrong with the contender, if anything: "wrong: …" for one
	// that gave a wrong result, "missing: …" for one that cannot be had here.
	Note string `json:"note,omitempty"`
}

// JSON returns the result as one line.
func (r Result) JSON() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("harness: %v", err)) // only NaN and infinities fail, and they are never measured
	}
	return string(b)
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

// ratio returns how many times better ours is than theirs.
func ratio(m Metric, ours, theirs float64) *float64 {
	better, worse := theirs, ours
	if m.More {
		better, worse = ours, theirs
	}
	if worse == 0 {
		return nil
	}
	r := better / worse
	return &r
}
