package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrMissing is what a contender's Start returns, wrapped with the reason, when it
// cannot be had on this machine.
var ErrMissing = errors.New("missing")

// ErrWrong is what a round returns, wrapped with what was wrong, when the contender
// gave a wrong result. The contender stays in the table, marked.
var ErrWrong = errors.New("wrong")

// Suite is a set of cases with a name.
type Suite struct {
	Name string
	// About describes in a line what is compared.
	About string
	// Run runs all cases. It announces its plan to r, and calls r.Compare for
	// each case.
	Run func(ctx context.Context, r *Run) error
}

// Contender is one of those that are compared.
type Contender struct {
	Name string
	Ours bool // exactly one of a case is
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

// Run is a run of a suite.
type Run struct {
	// Quick asks for a run of well under a minute.
	Quick bool

	suite    string
	results  []Result
	entries  []*entry // of all cases that are done
	progress *progress
}

// NewRun returns a run of a suite that reports its progress to report, which may be
// nil.
func NewRun(suite string, quick bool, report func(done, planned int, what string)) *Run {
	return &Run{Quick: quick, suite: suite, progress: &progress{report: report}}
}

// Results returns what was measured so far.
func (r *Run) Results() []Result { return r.results }

// Plan announces how many rounds of single contenders will be run, for the
// progress bar.
func (r *Run) Plan(rounds int) { r.progress.planned += rounds }

// Case is what contenders are compared in.
type Case struct {
	Name       string
	Contenders []Contender
}

// Compare runs a case: every contender is started, then each does a round in turn,
// the first of a turn being another one each time, and then each is closed. A
// contender that is missing or wrong is reported so, and is an error only if it is
// ours; any other error ends the run.
func (r *Run) Compare(ctx context.Context, name string, rounds int, metrics []Metric, contenders []Contender) error {
	return r.CompareAll(ctx, rounds, metrics, []Case{{name, contenders}})
}

// CompareAll is [Run.Compare] of several cases whose contenders take turns with one
// another, too, so that [Run.Quotient] can divide across cases.
func (r *Run) CompareAll(ctx context.Context, rounds int, metrics []Metric, cases []Case) error {
	var all []*entry
	defer func() {
		for _, e := range all {
			e.close()
		}
	}()
	for _, c := range cases {
		for _, contender := range c.Contenders {
			e := &entry{Contender: contender, of: c.Name, samples: map[string][]float64{}}
			all = append(all, e)
			if err := e.start(ctx); err != nil {
				return e.wrapError(err)
			}
		}
	}
	if err := r.rounds(ctx, rounds, all); err != nil {
		return err
	}
	r.entries = append(r.entries, all...)
	for _, c := range cases {
		r.report(c.Name, metrics, slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return e.of != c.Name }))
	}
	for _, e := range all {
		if e.Ours && e.note != "" {
			return e.wrapError(errors.New(e.note))
		}
	}
	return nil
}

// rounds has the contenders take turns.
func (r *Run) rounds(ctx context.Context, n int, all []*entry) error {
	for round := range n {
		for i := range all {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			e := all[(i+round)%len(all)]
			r.progress.step(e.of + " " + e.Name)
			if err := e.round(ctx); err != nil {
				return e.wrapError(err)
			}
		}
	}
	return nil
}

// report turns the samples of a case into results.
func (r *Run) report(name string, metrics []Metric, entries []*entry) {
	for _, m := range metrics {
		var ours *float64
		for _, e := range entries {
			if s := e.samples[m.Name]; e.Ours && len(s) > 0 {
				median, _, _ := summary(s)
				ours = &median
			}
		}
		for _, e := range entries {
			res := Result{Suite: r.suite, Case: name, Contender: e.Name, Metric: m.Name, Unit: m.Unit, Note: e.note}
			if s := e.samples[m.Name]; len(s) > 0 {
				res.Median, res.Min, res.Max = summary(s)
				if !e.Ours && ours != nil {
					res.Ratio = ratio(m, *ours, res.Median)
				}
			} else if e.note == "" {
				continue // it has no such metric
			}
			r.results = append(r.results, res)
		}
	}
}

// entry is a contender in a case.
type entry struct {
	Contender
	of       string // its case
	instance Instance
	samples  map[string][]float64
	note     string
}

func (e *entry) wrapError(err error) error { return fmt.Errorf("%s: %s: %w", e.of, e.Name, err) }

func (e *entry) start(ctx context.Context) (err error) {
	e.instance, err = e.Start(ctx)
	if errors.Is(err, ErrMissing) {
		e.note, err = err.Error(), nil
	}
	return err
}

func (e *entry) round(ctx context.Context) error {
	if e.instance == nil {
		return nil
	}
	values, err := e.instance.Round(ctx)
	if errors.Is(err, ErrWrong) {
		e.note, err = err.Error(), nil
	}
	for name, v := range values {
		e.samples[name] = append(e.samples[name], v)
	}
	return err
}

func (e *entry) close() {
	if e.instance != nil {
		_ = e.instance.Close() // the figures are taken
	}
}

// progress counts rounds.
type progress struct {
	done, planned int
	report        func(done, planned int, what string)
}

func (p *progress) step(what string) {
	p.done++
	if p.report != nil {
		p.report(p.done, max(p.planned, p.done), what)
	}
}
