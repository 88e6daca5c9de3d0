package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// differential runs the same lists of ops on Redis and in memory, by one clock.
type differential struct {
	*rand.Rand
	clock    *clock
	rules    []ratelimit.Rule
	charges  []charge
	waits    []time.Duration // what the latest results report
	sequence int             // is part of keys
}

// charge is a charge that can be refunded, with the receipts of both stores.
type charge struct {
	key           string
	rule          ratelimit.Rule
	redis, memory ratelimit.Receipt
}

// TestRedisMatchesMemory has the scripts read the server's clock, and keys expire by it. Lists have several
// groups of one key, and groups several rules, also near 2^53.
func TestRedisMatchesMemory(t *testing.T) {
	t.Parallel()
	server, clock := startAt(t, time.UnixMicro(1<<50+123_457))
	client := server.Client(nil)
	store, err := redisstore.New(client, redisstore.Options{Timeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, matchMemory(t, clock, store, length(t, 2*time.Second)))

	// A store whose keys expire too early is found.
	hasty := &buggy{store, func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
		results, err := inner.Do(ctx, ops)
		for _, key := range client.Keys(ctx, "*").Val() {
			client.PExpire(ctx, key, 3*time.Second)
		}
		return results, err
	}}
	require.NoError(t, client.FlushAll(t.Context()).Err())
	require.ErrorContains(t, matchMemory(t, clock, hasty, time.Minute), "in memory")
}

// matchMemory returns an error as soon as a store on Redis differs from the one in memory.
func matchMemory(t *testing.T, clock *clock, redis ratelimit.Store, length time.Duration) error {
	memory, err := memstore.New(memstore.Options{Clock: clock.time})
	require.NoError(t, err)
	d := &differential{Rand: random(t), clock: clock, rules: differentialRules()}
	began, ops := clock.now, 0
	var trail []string // the latest lists
	for end := time.Now().Add(length); time.Now().Before(end); {
		clock.advance(d.pause())
		ofRedis, ofMemory := d.list()
		ops += len(ofRedis)
		got, err := redis.Do(t.Context(), ofRedis)
		want, wantErr := memory.Do(t.Context(), ofMemory)
		trail = append(trail[max(0, len(trail)-30):], fmt.Sprintf("%d: %+v: %+v %v", clock.now, ofRedis, got, err))
		if fmt.Sprint(wantErr) != fmt.Sprint(err) {
			return fmt.Errorf("in Redis: %v, in memory: %v\n%v", err, wantErr, trail)
		}
		d.waits = d.waits[:0]
		for i := range got {
			d.observe(ofRedis[i], got[i], want[i])
			got[i].Receipt, want[i].Receipt = ratelimit.Receipt{}, ratelimit.Receipt{}
			if !reflect.DeepEqual(got[i], want[i]) {
				return fmt.Errorf("op %d: in Redis %+v, in memory %+v\n%v", i, got[i], want[i], trail)
			}
		}
		if err != nil { // some groups may have been done
			d.sequence++
			d.charges = nil
		}
	}
	tally("Redis against memory, keys expire by a clock of the test", row{times: 1, takes: ops, other: true})
	t.Logf("%d ops, in %v by the clock", ops, time.Duration(clock.now-began)*time.Microsecond)
	return nil
}

// differentialRules returns rules of all algorithms with small limits and the largest. Some share counters.
func differentialRules() (rules []ratelimit.Rule) {
	const s, largest = time.Second, int64(1 << 53)
	for _, limit := range []int64{6, largest} {
		for _, r := range []ratelimit.Rule{
			ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Interval: s, Span: 4 * s}),
			ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: 3500 * time.Millisecond, Interval: s, Span: 9 * s, Expiry: 15 * s}),
			ratelimit.SlidingLog(limit, 4*s),
			ratelimit.SlidingLog(limit, 4*s).WithStream(),
			ratelimit.FixedWindow(limit, 4*s),
			ratelimit.SlidingLog(limit, 5*s).WithBlock(ratelimit.Block{After: 2, For: 3 * s}),
		} {
			r = r.WithName(fmt.Sprint("limit", limit))
			rules = append(rules, r, r.WithLimit(limit-1))
		}
	}
	return append(rules, ratelimit.Throttle(2*s), ratelimit.GCRA(6, 4*s), ratelimit.GCRA(100_000, 24*time.Hour))
}

// pause returns by how much the clock advances: often nothing, or to a moment that results have reported,
// or over a gap in which keys expire.
func (d *differential) pause() time.Duration {
	switch n := d.IntN(12); {
	case n < 4:
		return 0
	case n < 7 && len(d.waits) > 0:
		return max(0, d.waits[d.IntN(len(d.waits))]-time.Duration(d.IntN(2))*time.Microsecond)
	case n == 7:
		return time.Duration(d.IntN(60_000_000)) * time.Microsecond
	case n == 8:
		return time.Duration(d.IntN(9)) * time.Second
	}
	return time.Duration(d.IntN(3_000_000)) * time.Microsecond
}

// list draws ops for both stores: groups on two keys, each by a few rules.
func (d *differential) list() (ofRedis, ofMemory []ratelimit.Op) {
	for range 1 + d.IntN(3) {
		key := fmt.Sprint(d.sequence, "k", d.IntN(2))
		size := 1 + d.IntN(3)
		for i := range size {
			op := d.draw(key)
			op.NewGroup = i == 0
			if size == 1 && op.Kind == ratelimit.Take && d.IntN(3) == 0 {
				op.Prepaid = time.Duration(d.Int64N(min(op.Rule.Per(), ratelimit.MaxPrepaid).Microseconds())) * time.Microsecond
			}
			other := op
			switch op.Kind {
			case ratelimit.Reset:
				d.forget(op) // also before later refunds of this list
			case ratelimit.Refund:
				if at := slices.IndexFunc(d.charges, func(c charge) bool { return c.of(op) }); at >= 0 {
					op.Receipt, other.Receipt = d.charges[at].redis, d.charges[at].memory
					d.charges = slices.Delete(d.charges, at, at+1)
				}
			}
			ofRedis, ofMemory = append(ofRedis, op), append(ofMemory, other)
		}
	}
	return ofRedis, ofMemory
}

func (d *differential) draw(key string) ratelimit.Op {
	kinds := []ratelimit.Kind{
		ratelimit.Take, ratelimit.Take, ratelimit.Take, ratelimit.Take, ratelimit.Peek,
		ratelimit.Add, ratelimit.Count, ratelimit.Refund, ratelimit.Refund, ratelimit.Reset,
	}
	op := ratelimit.Op{Key: key, Rule: d.rules[d.IntN(len(d.rules))], Kind: kinds[d.IntN(len(kinds))]}
	if op.Kind == ratelimit.Count && op.Rule.Algorithm() == "gcra" {
		op.Kind = ratelimit.Peek
	}
	if a := op.Rule.Algorithm(); op.Kind == ratelimit.Count && a != "window" {
		op.Interval = time.Duration(d.Int64N(op.Rule.Span().Microseconds())) * time.Microsecond
	}
	if op.Kind == ratelimit.Take || op.Kind == ratelimit.Peek || op.Kind == ratelimit.Add {
		burst := op.Rule.Burst()
		op.N = max(1, []int64{1, 1, 2, 3, burst / 2, burst - 1, burst}[d.IntN(7)])
		op.N = min(op.N, burst)
	}
	return op
}

// observe remembers a charge, and the waits of a result.
func (d *differential) observe(op ratelimit.Op, got, want ratelimit.Result) {
	if op.Kind == ratelimit.Reset {
		d.forget(op)
	}
	if got.Allowed && want.Allowed && got.Receipt.N > 0 && op.Kind != ratelimit.Refund {
		d.charges = append(d.charges, charge{op.Key, op.Rule, got.Receipt, want.Receipt})
		d.charges = d.charges[max(0, len(d.charges)-50):]
	}
	for _, wait := range []time.Duration{got.RetryAfter, got.ResetAfter, got.Blocked} {
		if wait < time.Hour {
			d.waits = append(d.waits, wait)
		}
	}
}

func (c charge) of(op ratelimit.Op) bool { return c.key == op.Key && c.rule.SharesCounter(op.Rule) }

// forget drops the charges of a counter that is reset: what was charged anew in the same microsecond has the
// same receipt in Redis only.
func (d *differential) forget(op ratelimit.Op) {
	d.charges = slices.DeleteFunc(d.charges, func(c charge) bool { return c.of(op) })
}
