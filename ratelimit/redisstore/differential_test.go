package redisstore

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// times are the times at which the stores are compared. 2^52 µs are in 2112. The last time is some days before 2^53 µs, the
// largest time that the scripts can represent.
var times = []time.Time{someTime, time.UnixMicro(1<<52 + 12345), time.UnixMicro(1<<53 - 1<<41)}

var newYork, _ = time.LoadLocation("America/New_York")

// large is the name of rules with the largest limit.
const large = "large"

// families returns rules with small limits and with the largest limits, grouped by the counter that they share.
func families() (all [][]ratelimit.Rule) {
	const s, most, long = time.Second, int64(1 << 53), 1000 * time.Hour // counters must not expire
	for _, block := range []ratelimit.Block{{}, {After: 2, For: 3 * s}} {
		for _, limit := range []int64{6, most} {
			name := ""
			if limit == most {
				name = large
			}
			family := func(r ratelimit.Rule) {
				tiers := []ratelimit.Rule{r}
				if r.Algorithm() != "gcra" { // the counters of a GCRA with other limits expire at other times
					tiers = append(tiers, r.WithLimit(limit-1), r.WithLimit(3))
				}
				all = append(all, tiers)
			}
			family(ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Interval: s, Span: 4 * s, Expiry: long}).WithName(name).WithBlock(block))
			family(ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: 3500 * time.Millisecond, Interval: s, Span: 9 * s, Expiry: long}).WithName(name).WithBlock(block))
			family(ratelimit.SlidingLog(limit, 4*s).WithName(name).WithBlock(block))
			family(ratelimit.SlidingLog(limit, 4*s).WithName(name).WithStream().WithBlock(block))
			family(ratelimit.FixedWindow(limit, 4*s).WithName(name).WithBlock(block))
			family(ratelimit.Calendar(limit, ratelimit.Day, newYork).WithName(name).WithBlock(block))
			if limit < most {
				family(ratelimit.GCRA(limit, 4*s).WithName(name).WithBlock(block))
			} else {
				family(ratelimit.GCRA(100_000, 24*time.Hour).WithName(name).WithBlock(block))
			}
		}
	}
	return all
}

// TestRedisMatchesMemoryStore searches for a short sequence of groups and concurrent ops for which the stores differ.
func TestRedisMatchesMemoryStore(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	warm := newStore(t, c, patient)
	warm.scripts = slowScripts
	var takes []ratelimit.Op
	for _, tiers := range families() { // Redis must know all scripts, because a call with an unknown script is delayed
		op := ratelimit.Op{Rule: tiers[0], Key: "k", N: 1}
		for op.Kind = ratelimit.Take; op.Kind <= ratelimit.Reset; op.Kind++ {
			if op.Kind != ratelimit.Count || op.Rule.Algorithm() != "gcra" {
				do(t, warm, op)
			}
		}
		op.Kind = ratelimit.Take
		takes = append(takes, op)
		do(t, warm, op, op)
	}
	do(t, warm, takes...)
	rapid.Check(t, func(rt *rapid.T) {
		require.NoError(rt, c.FlushAll(t.Context()).Err())
		clock := storetest.NewClock(rapid.SampledFrom(times).Draw(rt, "time"))
		memory, err := memstore.New(memstore.Options{Clock: clock.Now})
		require.NoError(rt, err)
		d := &differential{T: rt, test: t, clock: clock, memory: memory, redis: newStore(t, c, patient), latest: clock.Now()}
		d.redis.clock, d.redis.wall, d.redis.scripts = clock.Now, clock.Now, slowScripts
		all := families()
		for range 2 {
			d.families = append(d.families, rapid.SampledFrom(all).Draw(rt, "family"))
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			d.step()
		}
	})
}

// differential runs the same ops on both stores.
type differential struct {
	*rapid.T
	test     *testing.T
	clock    *storetest.ManualClock
	latest   time.Time
	memory   *memstore.Store
	redis    *Store
	families [][]ratelimit.Rule
	charged  []charged
}

// charged is a charge and its receipts from both stores.
type charged struct {
	counter       string
	redis, memory ratelimit.Receipt
}

// question is an op for both stores. A refund needs a different receipt for each store.
type question struct {
	ratelimit.Op
	memory ratelimit.Receipt
}

// large reports whether the question's counter can hold 2^53 units.
func (q *question) large() bool { return q.Rule.Name() == large }

func (q *question) counter() string { return q.Key + counterName(q.Rule) }

func (d *differential) number(most int) int { return rapid.IntRange(0, most).Draw(d.T, "") }

func (d *differential) step() {
	d.move()
	if d.number(2) == 0 {
		d.moment()
		return
	}
	key := d.key()
	asked := make([]question, 1+d.number(3))
	for i := range asked {
		if d.number(7) == 0 {
			key = d.key()
		}
		asked[i] = d.ask(key)
	}
	if slices.ContainsFunc(asked, func(q question) bool { return q.large() }) { // after an overflow, a store may have charged other groups
		asked = asked[:firstGroup(asked)]
	}
	if q := &asked[0]; len(asked) == 1 && q.Kind == ratelimit.Take {
		q.Prepaid = time.Duration(d.number(4000)) * time.Millisecond * time.Duration(d.number(1))
	}
	d.group(asked)
}

// firstGroup returns the number of ops in the first group.
func firstGroup(asked []question) int {
	ops := make([]ratelimit.Op, len(asked))
	for i, q := range asked {
		ops[i] = q.Op
	}
	for _, group := range storage.Groups(ops) {
		return len(group)
	}
	return 0
}

// move moves the clock forward or back. Some steps are longer than the span of the bucket rules.
func (d *differential) move() {
	by := time.Duration(d.number(3_000_000)) * time.Microsecond
	switch d.number(9) {
	case 0:
		by *= 10
	case 1:
		by = max(-by, d.latest.Add(-5*time.Second).Sub(d.clock.Now()))
	case 2, 3, 4:
		by = 0
	}
	d.clock.Advance(by)
	if now := d.clock.Now(); now.After(d.latest) {
		d.latest = now
	}
}

func (d *differential) key() string { return fmt.Sprint("k", d.number(1)) }

func (d *differential) ask(key string) (q question) {
	q.Rule, q.Key = rapid.SampledFrom(d.families[d.number(len(d.families)-1)]).Draw(d.T, "rule"), key
	q.Kind = rapid.SampledFrom([]ratelimit.Kind{
		ratelimit.Take, ratelimit.Take, ratelimit.Take, ratelimit.Peek, ratelimit.Add, ratelimit.Count, ratelimit.Refund, ratelimit.Reset,
	}).Draw(d.T, "kind")
	q.N = rapid.SampledFrom([]int64{1, 1, 2, 3, q.Rule.Limit() / 2, q.Rule.Limit(), q.Rule.Limit()/10*6 + 1}).Draw(d.T, "n")
	if q.Kind == ratelimit.Count && q.Rule.Algorithm() == "gcra" {
		q.Kind = ratelimit.Add
	}
	if (q.Kind == ratelimit.Count || q.Kind == ratelimit.Add) && q.Rule.Algorithm() != "gcra" && q.Rule.Algorithm() != "window" {
		q.Interval = time.Duration(d.number(int(q.Rule.Span()/time.Microsecond))) * time.Microsecond
	}
	switch q.Kind {
	case ratelimit.Reset:
		d.forget(q.counter())
	case ratelimit.Refund:
		for _, c := range d.charged {
			if c.counter == q.counter() && d.number(1) == 0 {
				q.Receipt, q.memory = c.redis, c.memory
				if d.number(2) == 0 { // a part of the charge, or more than the charge
					q.Receipt.N = q.N
					q.memory.N = q.N
				}
			}
		}
	}
	return q
}

// forget drops the receipts of a counter that is reset. If a counter begins again in the same microsecond, only the memory
// store recognizes receipts from before the reset.
func (d *differential) forget(counter string) {
	d.charged = slices.DeleteFunc(d.charged, func(c charged) bool { return c.counter == counter })
}

// group runs a group on both stores.
func (d *differential) group(asked []question) {
	ops := make([]ratelimit.Op, len(asked))
	for i, q := range asked {
		ops[i] = q.Op
	}
	got, err := d.redis.Do(d.test.Context(), ops)
	d.Logf("%v group %v: %v %v", d.clock.Now().UnixMicro(), ops, got, err)
	for i := range ops {
		if ops[i].Kind == ratelimit.Refund {
			ops[i].Receipt = asked[i].memory
		}
	}
	want, wantErr := d.memory.Do(d.test.Context(), ops)
	require.Equal(d, fmt.Sprint(wantErr), fmt.Sprint(err), "%v", ops)
	for i := range got {
		d.compare(asked[i], got[i], want[i])
	}
}

// moment runs ops as if several callers had made them at the same time.
func (d *differential) moment() {
	asked := make([]question, 2+d.number(10))
	ops := make([]ratelimit.Op, len(asked))
	for i := range asked {
		asked[i] = d.ask(d.key())
		switch q := &asked[i]; {
		case q.Kind == ratelimit.Reset: // the stores may differ for a refund in the same microsecond
			q.Kind = ratelimit.Peek
		case sharesCall(&q.Op) && q.large() && q.Rule.Per() < q.Rule.Span(): // if equal takes overflow together, all of them fail
			q.Kind = ratelimit.Peek
		}
		if i > 0 && d.number(1) == 0 {
			asked[i] = asked[d.number(i-1)]
		}
		ops[i] = asked[i].Op
	}
	if storage.Validate(ops) != nil {
		return
	}
	got, errs := atOnce(d.test.Context(), d.redis, ops...)
	d.Logf("%v at once %v: %v %v", d.clock.Now().UnixMicro(), ops, got, errs)
	for _, i := range order(ops) {
		op := ops[i]
		if op.Kind == ratelimit.Refund {
			op.Receipt = asked[i].memory
		}
		want, err := d.memory.DoOne(d.test.Context(), op)
		require.Equal(d, fmt.Sprint(err), fmt.Sprint(errs[i]), "%v", op)
		if err == nil {
			d.compare(asked[i], got[i], want)
		}
	}
}

// order returns the indexes of ops in the order in which Redis runs them. Ops that share a call run at the place of
// the first of them, and joined ops run together.
func order(ops []ratelimit.Op) []int {
	first := func(i int, same func(other ratelimit.Op) bool) int {
		op := ops[i]
		if !sharesCall(&op) {
			return i
		}
		return slices.IndexFunc(ops, func(other ratelimit.Op) bool {
			return sharesCall(&other) && other.Rule == op.Rule && other.Kind == op.Kind && other.Interval == op.Interval && same(other)
		})
	}
	at := make([]int, len(ops))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int {
		batch := func(i int) int { return first(i, func(ratelimit.Op) bool { return true }) }
		entry := func(i int) int {
			op := ops[i]
			if charge := op.Kind == ratelimit.Take || op.Kind == ratelimit.Add; charge && (op.Rule.Algorithm() == "log" || op.Kind == ratelimit.Add) {
				return i
			}
			return first(i, func(other ratelimit.Op) bool {
				return other.Key == op.Key && (other.N == op.N || op.Kind == ratelimit.Count)
			})
		}
		return cmp.Or(cmp.Compare(batch(i), batch(j)), cmp.Compare(entry(i), entry(j)))
	})
	return at
}

func (d *differential) compare(q question, got, want ratelimit.Result) {
	if got.Allowed && (q.Kind == ratelimit.Take || q.Kind == ratelimit.Add) {
		d.charged = append(d.charged, charged{q.counter(), got.Receipt, want.Receipt})
		require.Equal(d, want.Receipt.N, got.Receipt.N)
		if q.Rule.Algorithm() != "buckets" { // Redis has the bucket's number, and the memory its end
			require.Equal(d, want.Receipt.At, got.Receipt.At)
		}
	}
	if q.Kind == ratelimit.Reset {
		d.forget(q.counter())
	}
	got.Receipt, want.Receipt = ratelimit.Receipt{}, ratelimit.Receipt{}
	require.Equal(d, want, got, "%v", q)
}
