package layer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Mode is how the layer of [FailoverOptions] answers takes, peeks and adds without the store.
type Mode uint8

const (
	// Closed answers with a [*ReducedError], which becomes a 503. It is the default: a
	// limit may be what protects logins, and one that falls with its store can be made to.
	Closed Mode = iota
	// Open allows, and counts nothing.
	Open
	// Local counts in this process's memory, by the rule's limit divided by
	// [FailoverOptions.Replicas], beginning with what the store last said that remains.
	Local
)

var modeNames = [...]string{Closed: "closed", Open: "open", Local: "local"}

// String returns the mode's name in lower case.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// FailoverOptions are the layer that answers in time, whatever happens to the store. The zero value
// is usable.
//
// Each call of the store has a deadline of its own, even if the store heeds none. When it
// fails, or has failed too often to be asked, a take, peek or add is answered as its rule's
// [Mode] says, from [ratelimit.FromFailover]: what nobody knows is 0, and there is no
// receipt. In a group the strictest of the modes counts, and if one take is denied, the
// group changes nothing. A count, a refund or a reset is a [*ReducedError] in every mode,
// with all that comes in the same call: nothing stands in for a counter that is not there.
//
// A denial is no failure, nor is an op that is wrong, nor a caller who leaves. A panic is
// one, and goes on to the caller. Nothing is asked twice; a call that failed may have
// been charged, then or later.
//
// It costs some 3 µs and 1 KB of small allocations a call.
type FailoverOptions struct {
	// Timeout is how long the store has to answer. It should be well below the deadlines
	// of callers: who leaves before it ends is no failure of the store. Default: 50 ms.
	Timeout time.Duration
	// Mode is how it is answered without the store. Default: Closed.
	Mode Mode
	// ModeFor chooses a mode for each rule. It is called concurrently, and has to be fast.
	// Nil means Mode for all.
	ModeFor func(ratelimit.Rule) Mode
	// Replicas is among how many processes a limit is divided in Local; each has at least
	// 1. Default: 1.
	Replicas int
	// Keys is how many counters of keys Local knows what remains of, and how many it
	// counts. Default: 65,536, which take up to 16 MB and their keys' length.
	Keys int

	// Calls and Ratio say when the store is given up: when, of at least so many calls in
	// the last second, this part has failed. If Timeout is more than half a second, it is
	// the last two Timeouts instead. Default: 10, and 0.5.
	Calls int
	Ratio float64
	// ConsecutiveFailures says when the store is given up, too, whatever Calls and Ratio
	// are: when so many calls in a row have failed in that time, and none has succeeded for
	// a Timeout. So a store that has answered thousands of calls and then hangs is given up
	// after one Timeout. 1 << 30 turns this off. Default: 10.
	ConsecutiveFailures int
	// Retry is how long the store is then left alone. After it one take tries again; if it
	// fails, that long once more. Default: 250 ms.
	Retry time.Duration
	// MaxAbandoned is how many calls may be under way that nobody waits for any more,
	// because the store doesn't heed its context. With so many of them it isn't asked, nor
	// tried again. Default: 256.
	MaxAbandoned int
	// Logger is told when the store is given up, and when it is back. Default:
	// [slog.Default].
	Logger *slog.Logger
}

func (o FailoverOptions) withDefaults() FailoverOptions {
	def := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def(&o.Replicas, 1)
	def(&o.Keys, 1<<16)
	def(&o.Calls, 10)
	def(&o.ConsecutiveFailures, 10)
	def(&o.MaxAbandoned, 256)
	if o.Timeout == 0 {
		o.Timeout = 50 * time.Millisecond
	}
	if o.Ratio == 0 {
		o.Ratio = 0.5
	}
	if o.Retry == 0 {
		o.Retry = 250 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o FailoverOptions) check() error {
	const of = "FailoverOptions."
	if err := cmp.Or(
		option.Duration("layer", of+"Timeout", o.Timeout, 1),
		option.Duration("layer", of+"Retry", o.Retry, 1),
		option.Count("layer", of+"Replicas", o.Replicas, 1),
		option.Count("layer", of+"Keys", o.Keys, 1),
		option.Count("layer", of+"Calls", o.Calls, 1),
		option.Count("layer", of+"ConsecutiveFailures", o.ConsecutiveFailures, 1),
		option.Count("layer", of+"MaxAbandoned", o.MaxAbandoned, 1),
	); err != nil {
		return err
	}
	switch {
	case o.Mode > Local:
		return option.Errorf("layer", of+"Mode", "is %v, want Closed, Open or Local", o.Mode)
	case !(o.Ratio > 0 && o.Ratio <= 1):
		return option.Errorf("layer", of+"Ratio", "is %v, want more than 0 and at most 1", o.Ratio)
	}
	return nil
}

// failover is what FailoverOptions configures.
type failover struct {
	inner   ratelimit.Store
	one     func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	o       FailoverOptions
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	local   *local // nil if no rule can have that mode
	state   watch

	start       time.Time
	lastSuccess atomic.Int64 // of a call, in nanoseconds since start

	abandoned atomic.Int64
	failed    atomic.Int64
	answered  atomic.Int64
}

// newFailover returns a layer around inner. An error names the field that is out of range.
func newFailover(inner ratelimit.Store, o FailoverOptions) (*failover, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &failover{inner: inner, one: storage.DoOne(inner), o: o, start: time.Now()}
	if o.Mode == Local || o.ModeFor != nil {
		var err error
		if f.local, err = newLocal(o); err != nil {
			return nil, err
		}
	}
	f.breaker = f.newBreaker()
	return f, nil
}

// DoOne is Do with a list of one.
func (f *failover) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	ops := [1]ratelimit.Op{op}
	results, err := f.do(ctx, ops[:], true)
	if err != nil {
		return ratelimit.Result{}, err
	}
	return results[0], nil
}

// Do runs ops as [ratelimit.Store] says. Its errors are those of [storage.Validate], the
// cause of ctx's end, [*ReducedError], and those of the store that say something of the
// ops, such as [ratelimit.ErrOverflow].
func (f *failover) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	return f.do(ctx, ops, false)
}

func (f *failover) do(ctx context.Context, ops []ratelimit.Op, one bool) ([]ratelimit.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := storage.Validate(ops); err != nil {
		return nil, err
	}
	results, err := f.ask(ctx, ops, one)
	switch {
	case err == nil:
		return results, nil
	case ofOps(err), ctx.Err() != nil:
		return nil, err
	}
	f.answered.Add(1)
	return f.answer(ctx, ops, err)
}

// FailoverStats are what the layer of [FailoverOptions] has seen since it was made.
type FailoverStats struct {
	Down      bool  // the store is given up
	GivenUp   int64 // how often it was
	Failed    int64 // calls of the store that failed
	Answered  int64 // calls that were answered without it
	Abandoned int64 // calls under way that nobody waits for any more
}

// Stats returns the numbers.
func (f *failover) Stats() FailoverStats {
	down, givenUp := f.state.get()
	return FailoverStats{
		Down: down, GivenUp: givenUp, Failed: f.failed.Load(),
		Answered: f.answered.Load(), Abandoned: f.abandoned.Load(),
	}
}
