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

// Mode says how the layer of [FailoverOptions] answers takes, peeks and adds without the store.
type Mode uint8

const (
	// Closed returns an [*UnavailableError], which becomes a 503. It is the default, because a limit may protect
	// logins, and an attacker may be able to make the store fail.
	Closed Mode = iota
	// Open allows every op and counts nothing.
	Open
	// Local counts in the memory of this process, with the rule's limit divided by [FailoverOptions.Replicas]. A key
	// starts with its share of the units that remained in the store's last report.
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

// FailoverOptions configures the layer that answers in time even if the store fails. The zero value is usable.
//
// If a call of the store fails or the circuit breaker is open, the rule's [Mode] decides the result of takes, peeks
// and adds. The result's source is [ratelimit.FromFailover]. Unknown fields are 0, and there is no receipt. The
// strictest mode in a group applies to the whole group. A group with a denied take charges nothing. Counts, refunds
// and resets need the store's counter. They return an [*UnavailableError] in every mode, and so do all other ops of
// the same call. Units of a [ratelimit.Concurrent] that Local has counted have a receipt and can be refunded.
//
// The breaker opens if at least ten calls ended in the last second (or in two Timeouts, if these are longer) and the
// share Ratio of them failed. It also opens if ten calls in sequence failed and none has succeeded for a Timeout.
// Denials, invalid ops and callers that leave do not count as failures. A panic of the store is logged, and
// counts as a failure unless the caller has left. No call is repeated. A failed call may have charged. While 256 calls are in flight that have timed out,
// no other call begins.
type FailoverOptions struct {
	// Timeout is the time within which the store has to answer. It should be much shorter than the deadlines of
	// callers, because a call whose caller leaves before the Timeout does not count as a failure. The zero value
	// means 50 ms.
	Timeout time.Duration
	// Mode is the mode of all rules if ModeFor is nil. The zero value means Closed.
	Mode Mode
	// ModeFor returns the mode of a rule. It is called concurrently and must be fast. Nil means that all rules have
	// Mode.
	ModeFor func(ratelimit.Rule) Mode
	// Replicas is the number of processes that share a limit in mode Local. Each process has at least 1 unit. The
	// zero value means 1.
	Replicas int
	// MaxKeys is the maximum number of keys that Local counts, and the maximum number of keys whose remaining units
	// it remembers. The zero value means 65,536. These take up to 16 MB plus the keys.
	MaxKeys int
	// Ratio is the share of failed calls that opens the breaker, above 0 and at most 1. The zero value means 0.5.
	Ratio float64
	// Retry is the time for which the breaker stays open before one call tries the store again. The zero value means
	// 250 ms.
	Retry time.Duration
	// Logger logs when the breaker opens and closes. Nil means [slog.Default].
	Logger *slog.Logger
}

// The limits of the breaker.
const (
	minCalls       = 10 // the number of calls from which on Ratio counts
	maxConsecutive = 10
	maxAbandoned   = 256
)

func (o FailoverOptions) withDefaults() FailoverOptions {
	o.Timeout = cmp.Or(o.Timeout, 50*time.Millisecond)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.MaxKeys = cmp.Or(o.MaxKeys, 1<<16)
	o.Ratio = cmp.Or(o.Ratio, 0.5)
	o.Retry = cmp.Or(o.Retry, 250*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o FailoverOptions) check() error {
	const of = "FailoverOptions."
	switch {
	case o.Mode > Local:
		return option.Errorf("layer", of+"Mode", "is %v, want Closed, Open or Local", o.Mode)
	case !(o.Ratio > 0 && o.Ratio <= 1):
		return option.Errorf("layer", of+"Ratio", "is %v, want more than 0 and at most 1", o.Ratio)
	}
	return cmp.Or(
		option.Duration("layer", of+"Timeout", o.Timeout, 1),
		option.Duration("layer", of+"Retry", o.Retry, 1),
		option.Count("layer", of+"Replicas", o.Replicas, 1),
		option.Count("layer", of+"MaxKeys", o.MaxKeys, 1),
	)
}

// failover is the layer of FailoverOptions.
type failover struct {
	inner   ratelimit.Store
	o       FailoverOptions
	start   time.Time
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	outage  outage
	local   *memstore.Store // counts for the mode Local; nil if no rule can have it
	known   *denialTable    // the remaining units that the store last reported; nil if local is nil

	lastSuccess atomic.Int64 // the time of the last successful call, in nanoseconds since start
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
		f.local, err = memstore.New(memstore.Options{MaxKeys: o.MaxKeys})
		f.known = newDenialTable(o.MaxKeys)
	}
	f.breaker = f.newBreaker()
	return f, err
}

// now returns the time since the layer was made, on a monotonic clock.
func (f *failover) now() time.Duration { return time.Since(f.start) }

func (f *failover) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	return f.run(ctx, slices.Clone(ops)) // the caller may change its ops while an abandoned call still runs
}

func (f *failover) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	results, err := f.run(ctx, []ratelimit.Op{op})
	if err != nil {
		return ratelimit.Result{}, err
	}
	return results[0], nil
}

// run runs ops. The caller must not change ops afterwards, because an abandoned call may still use them.
func (f *failover) run(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := check(ctx, ops); err != nil {
		return nil, err
	}
	if results := f.releaseLocally(ctx, ops); results != nil {
		return results, nil
	}
	results, err := f.call(ctx, ops)
	if err == nil || ratelimit.IsOpError(err) || ctx.Err() != nil {
		return results, err
	}
	f.answered.Add(1)
	return f.answer(ctx, ops, err)
}

// FailoverStats has the counters and the state of the layer that [FailoverOptions] configures.
type FailoverStats struct {
	Down      bool  // whether the circuit breaker is open
	Outages   int64 // the number of times that the breaker opened
	Failed    int64 // the number of calls of the store that failed
	Answered  int64 // the number of calls that were answered without the store
	Abandoned int64 // the number of calls in flight whose callers already have their answers
}

func (f *failover) Stats() FailoverStats {
	return FailoverStats{
		Down: f.outage.down.Load(), Outages: f.outage.count.Load(), Failed: f.failed.Load(),
		Answered: f.answered.Load(), Abandoned: f.abandoned.Load(),
	}
}
