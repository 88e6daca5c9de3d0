package load

import (
	"errors"
	"slices"
	"time"
)

// Options choose the server and the duration.
type Options struct {
	Addr    string
	Conns   int
	WarmUp  time.Duration // before anything is measured
	Measure time.Duration
	// Began and Ended are called when the measured time does, on the thread that sends
	// the load. Default: nothing.
	Began, Ended func() error `json:"-"`
}

// Conn is what a connection asks. It is used by one goroutine.
type Conn interface {
	// Next returns the next request.
	Next() []byte
	// Check reports whether got is the whole answer to it. It returns an error that is
	// ErrWrong if got is, or begins, a wrong answer.
	Check(got []byte) (whole bool, err error)
}

// ErrWrong is the error of a wrong answer.
var ErrWrong = errors.New("wrong answer")

// Result is what came of a load.
type Result struct {
	Requests   int           // all of them, also while warming up
	Throughput float64       // per second
	P50, P99   time.Duration // of those that were measured
	Wrong      string        // the first wrong answer, "" if there was none
}

// newResult makes the result of what was measured.
func (o *Options) newResult(requests int, took []time.Duration) (Result, error) {
	if len(took) == 0 {
		return Result{}, errors.New("no answer while it was measured")
	}
	slices.Sort(took)
	return Result{
		Requests:   requests,
		Throughput: float64(len(took)) / o.Measure.Seconds(),
		P50:        took[len(took)/2],
		P99:        took[len(took)*99/100],
	}, nil
}
