package harness

import "slices"

// Ref names a contender of a case.
type Ref struct{ Case, Contender string }

// Quotient adds a result by a name of its own: the metric of one contender divided by that
// of another. It is the median of what each turn comes to, in which both were measured
// within the time of a turn. Without a figure of one of them there is a note instead.
func (r *Run) Quotient(name string, m Metric, of, by Ref) {
	res := Result{Case: name, Contender: of.Contender, Metric: m.Name + " ratio", Unit: "times"}
	a, b := r.entry(of), r.entry(by)
	switch {
	case a == nil || b == nil:
		res.Note = "missing: " + name + " was not measured"
	case a.note != "" || b.note != "":
		res.Note = a.note
		if a.note == "" {
			res.Note = b.note
		}
	default:
		var samples []float64
		theirs := b.samples[m.Name]
		for i, v := range a.samples[m.Name] {
			if i < len(theirs) && theirs[i] != 0 {
				samples = append(samples, v/theirs[i])
			}
		}
		if len(samples) == 0 {
			return // one of them has no such metric
		}
		res.Median, res.Min, res.Max = summary(samples)
	}
	r.results = append(r.results, res)
}

func (r *Run) entry(ref Ref) *entry {
	i := slices.IndexFunc(r.entries, func(e *entry) bool { return e.of == ref.Case && e.Name == ref.Contender })
	if i < 0 {
		return nil
	}
	return r.entries[i]
}
