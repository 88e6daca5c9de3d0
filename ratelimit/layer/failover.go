package layer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// Mode is how the layer of [FailoverOptions] answers takes, peeks and adds without the store.
type Mode uint8

const (
	// Closed answers with an [*UnavailableError], which becomes a 503. It is the default: a
	// limit may protect logins, and an attacker may be able to make its store fail.
	Closed Mode = iota
	// Open allows, and counts nothing.
	Open
	// Local counts in this process's memory, with the rule's limit divided by
	// [FailoverOptions.Replicas]. It starts with what the store last reported as remaining for
	// the rule.
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

// FailoverOptions configure the layer that answers in time, whatever happens to the store. The
// zero value is usable.
//
// Each call of the store has a deadline, even if the store ignores its context. When a call
// fails, or the circuit breaker is open, takes, peeks and adds are answered as their rule's
// [Mode] says, from [ratelimit.FromFailover]: unknown fields are 0, and there is no receipt.
// In a group the strictest mode applies, and if one take is denied, the group changes nothing.
// Counts, refunds and resets, and all ops of the same call, get an [*UnavailableError] in
// every mode: nothing can replace a counter that is not reachable.
//
// Denials, invalid ops and callers that leave are not failures. A panic is one, and is
// repeated in the caller. No call is retried; a failed call may still have charged, or charge
// later. The layer costs about 3 µs and 1 KB of small allocations a call.
type FailoverOptions struct {
	// Timeout is how long the store has to answer. It should be well below the deadlines of
	// callers: a caller that leaves before it is no failure of the store. Zero means 50 ms.
	Timeout time.Duration
	// Mode is how ops are answered without the store. The zero value means Closed.
	Mode Mode
	// ModeFor returns the mode of each rule. It is called concurrently, and has to be fast.
	// Nil means Mode for all rules.
	ModeFor func(ratelimit.Rule) Mode
	// Replicas is how many processes share a limit in Local; each has at least 1. Zero means 1.
	Replicas int
	// Keys is the maximum number of keys that Local counts, and of which it remembers what
	// remains. Zero means 65,536, which take up to 16 MB and the length of the keys.
	Keys int

	// Calls and Ratio configure the circuit breaker. It opens if this part of at least so many
	// calls in the last second has failed; in the last two Timeouts, if these are longer.
	// Zero means 10, and 0.5.
	Calls int
	Ratio float64
	// ConsecutiveFailures opens the breaker, too: after so many failures in sequence within
	// that time, if no call has succeeded for a Timeout. So a store that hangs after thousands
	// of answers is given up after one Timeout. 1 << 30 turns this off. Zero means 10.
	ConsecutiveFailures int
	// Retry is how long the breaker stays open. Then one call tries the store; if it fails,
	// the breaker stays open that long again. Zero means 250 ms.
	Retry time.Duration
	// MaxAbandoned is the maximum number of calls in flight whose callers have their answer,
	// because the store ignores its context. Beyond it the store isn't called. Zero means 256.
	MaxAbandoned int
	// Logger logs when the breaker opens and closes. Nil means [slog.Default].
	Logger *slog.Logger
}

func (o FailoverOptions) withDefaults() FailoverOptions {
	o.Timeout = cmp.Or(o.Timeout, 50*time.Millisecond)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.Keys = cmp.Or(o.Keys, 1<<16)
	o.Calls = cmp.Or(o.Calls, 10)
	o.Ratio = cmp.Or(o.Ratio, 0.5)
	o.ConsecutiveFailures = cmp.Or(o.ConsecutiveFailures, 10)
	o.Retry = cmp.Or(o.Retry, 250*time.Millisecond)
	o.MaxAbandoned = cmp.Or(o.MaxAbandoned, 256)
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

// failover is the layer of FailoverOptions.
type failover struct {
	inner   ratelimit.Store
	o       FailoverOptions
	start   time.Time
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	outage  outage
	local   *memstore.Store // nil if no rule can have that mode
	known   *denialTable    // what the store last reported as remaining, for local

	lastSuccess atomic.Int64 // of a call, in nanoseconds since start
	abandoned   atomic.Int64
	failed      atomic.Int64
	answered    atomic.Int64
}

// newFailover returns a layer around inner. It returns an error if an option is out of range.
func newFailover(inner ratelimit.Store, o FailoverOptions) (*failover, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	f, err := &failover{inner: inner, o: o, start: time.Now()}, error(nil)
	if o.Mode == Local || o.ModeFor != nil {
		f.local, err = memstore.New(memstore.Options{MaxKeys: o.Keys})
		f.known = newDenialTable(o.Keys)
	}
	f.breaker = f.newBreaker()
	return f, err
}

// now returns the time since the layer was made, on a monotonic clock.
func (f *failover) now() time.Duration { return time.Since(f.start) }

// Do implements [ratelimit.Store]. Its errors are those of [storage.Validate], the cause of
// ctx's end, [*UnavailableError], and the store's errors about ops, such as
// [ratelimit.ErrOverflow].
func (f *failover) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	return f.run(ctx, slices.Clone(ops)) // the caller may change ops while an abandoned call runs
}

func (f *failover) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	results, err := f.run(ctx, []ratelimit.Op{op})
	if err != nil {
		return ratelimit.Result{}, err
	}
	return results[0], nil
}

// run runs ops, which do not change meanwhile.
func (f *failover) run(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := check(ctx, ops); err != nil {
		return nil, err
	}
	results, err := f.call(ctx, ops)
	switch {
	case err == nil:
		return results, nil
	case ratelimit.IsOpError(err), ctx.Err() != nil:
		return nil, err
	}
	f.answered.Add(1)
	return f.answer(ctx, ops, err)
}

// FailoverStats count what the layer of [FailoverOptions] has seen since it was made.
type FailoverStats struct {
	Down      bool  // the circuit breaker is open
	Outages   int64 // how often it opened
	Failed    int64 // calls of the store that failed
	Answered  int64 // calls that were answered without the store
	Abandoned int64 // calls in flight whose callers have their answer
}

func (f *failover) Stats() FailoverStats {
	return FailoverStats{
		Down: f.outage.down.Load(), Outages: f.outage.count.Load(), Failed: f.failed.Load(),
		Answered: f.answered.Load(), Abandoned: f.abandoned.Load(),
	}
}
