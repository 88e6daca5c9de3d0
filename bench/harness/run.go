package harness

import (
	"context"
	"errors"
	"slices"
)

// ErrMissing means that this machine lacks a contender. A Start wraps it with the reason.
var ErrMissing = errors.New("missing")

// ErrWrong means that a contender gave a wrong result. A round wraps it with the details.
var ErrWrong = errors.New("wrong")

// Suite is a set of cases with a name.
type Suite struct {
	Name string
	// About describes in a line what is compared.
	About string
	// Package is the folder of the suite's package. The packages of the library that it
	// imports are the code that it measures. The zero value means Name.
	Package string
	// Program is the folder of a command of the library that the suite builds and
	// measures. The zero value means that it builds none.
	Program string
	// Run runs all cases. It calls r.Compare for each case.
	Run func(ctx context.Context, r *Run) error
}

// Contender is one of those that are compared.
type Contender struct {
	Name string
	Ours bool // exactly one of a case is
	// Least is the ratio to this contender that a short form must reach. The zero value
	// means two thirds of the stored ratio.
	Least float64
	// Start makes it ready for the rounds.
	Start func(ctx context.Context) (Instance, error)
}

// Instance is a contender that is running.
type Instance interface {
	// Round does the work of one round and returns a value for each metric it has.
	// It must be long enough to be measured, a tenth of a second or more.
	Round(ctx context.Context) (map[string]float64, error)
	Close() error
}

// Run is a run of a suite. The zero value runs the full form and reports no progress.
type Run struct {
	// Quick asks for the short form, which takes well under a minute.
	Quick bool
	// Begin is called before each case, unless it is nil.
	Begin func(name string)

	results []Result
	entries []*entry // of all cases that are done
}

// Results returns the results so far.
func (r *Run) Results() []Result { return r.results }

// Case is what contenders are compared in.
type Case struct {
	Name       string
	Contenders []Contender
}

// Compare runs a case. It starts every contender. The contenders then take turns, and
// each turn begins with another one. A contender that is missing, gives a wrong result or
// fails gets a note instead of a ratio. Compare returns an error only if this contender is
// ours, or if ctx is done.
func (r *Run) Compare(ctx context.Context, name string, rounds int, metrics []Metric, contenders []Contender) error {
	return r.CompareAll(ctx, rounds, metrics, []Case{{name, contenders}})
}

// CompareAll is [Run.Compare] of several cases. Contenders of different cases take turns
// as well, so that [Run.Quotient] can divide across cases.
func (r *Run) CompareAll(ctx context.Context, rounds int, metrics []Metric, cases []Case) error {
	var all []*entry
	defer func() {
		for _, e := range all {
			e.close()
		}
	}()
	var err error
	for _, c := range cases {
		if r.Begin != nil {
			r.Begin(c.Name)
		}
		for _, contender := range c.Contenders {
			e := &entry{Contender: contender, of: c.Name, samples: map[string][]float64{}}
			all = append(all, e)
			if startErr := e.start(ctx); err == nil {
				err = startErr
			}
		}
	}
	if err == nil {
		err = takeTurns(ctx, rounds, all)
	}
	r.entries = append(r.entries, all...)
	for _, c := range cases {
		r.report(c.Name, metrics, slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return e.of != c.Name }))
	}
	return err
}

// takeTurns runs the rounds.
func takeTurns(ctx context.Context, rounds int, all []*entry) error {
	for round := range rounds {
		for i := range all {
			if err := all[(i+round)%len(all)].round(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// report turns the samples of a case into results.
func (r *Run) report(name string, metrics []Metric, entries []*entry) {
	for _, m := range metrics {
		var ours Result
		for _, e := range entries {
			if s := e.samples[m.Name]; e.Ours && len(s) > 0 {
				ours.Median, ours.Min, ours.Max = summary(s)
			}
		}
		for _, e := range entries {
			res := Result{Case: name, Contender: e.Name, Metric: m.Name, Unit: m.Unit, Least: e.Least, Exact: m.Exact, Note: e.note}
			if s := e.samples[m.Name]; len(s) > 0 {
				res.Median, res.Min, res.Max = summary(s)
				if !e.Ours && e.note == "" && !(r.Quick && m.Tail) {
					res.addRatios(m, ours)
				}
			} else if e.note == "" {
				continue // it has no such metric
			}
			r.results = append(r.results, res)
		}
	}
}
