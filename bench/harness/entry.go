package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// entry is a contender in a case.
type entry struct {
	Contender
	of       string   // its case
	instance Instance // nil if it is missing or has failed
	samples  map[string][]float64
	note     string // the last error
}

func (e *entry) start(ctx context.Context) (err error) {
	if e.instance, err = e.Start(ctx); err != nil {
		e.instance = nil
	}
	return e.check(ctx, err)
}

func (e *entry) round(ctx context.Context) error {
	if e.instance == nil {
		return nil
	}
	values, err := e.instance.Round(ctx)
	for name, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			err = cmp.Or(err, fmt.Errorf("%w: %s is %v", ErrWrong, name, v))
			continue
		}
		e.samples[name] = append(e.samples[name], v)
	}
	if err != nil && !errors.Is(err, ErrWrong) {
		e.close()
	}
	return e.check(ctx, err)
}

// check notes an error. It returns the error if it concerns the whole run.
func (e *entry) check(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrMissing) && !errors.Is(err, ErrWrong) {
		err = fmt.Errorf("failed: %w", err)
	}
	e.note = strings.Join(strings.Fields(err.Error()), " ") // one line of a table
	if e.Ours {
		return fmt.Errorf("%s: %s: %w", e.of, e.Name, err)
	}
	return nil
}

func (e *entry) close() {
	if e.instance != nil {
		_ = e.instance.Close() // the figures are taken
		e.instance = nil
	}
}
