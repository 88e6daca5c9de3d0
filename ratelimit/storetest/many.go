package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// testMany asks a store that takes many for so many takes of one key, and for as many
// takes of another one: all is equal, the refunds of each of them included.
func testMany(h harness) {
	store, ok := h.store.(ratelimit.ManyTaker)
	if !ok {
		h.Skip("the store doesn't take many at once")
	}
	m := manyTakes{harness: h, many: store}
	for _, block := range []ratelimit.Block{{}, {After: 1, For: 90 * time.Second}, {After: 4, For: 3 * time.Second}} {
		for name, r := range manyRules(block) {
			if h.supports(r) {
				m.rule(fmt.Sprint(name, " ", block), r)
			}
		}
	}
	m.invalid()
}

func manyRules(block ratelimit.Block) map[string]ratelimit.Rule {
	log := ratelimit.LogOptions{Limit: 12, Per: time.Minute, Block: block}
	stream := log
	stream.Encoding = ratelimit.Stream
	return map[string]ratelimit.Rule{
		"buckets": ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 12, Per: time.Minute, Block: block})),
		"many buckets": ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{
			Limit: 12, Per: time.Minute, Interval: time.Second, Block: block,
		})),
		"log":    ratelimit.Must(ratelimit.SlidingLog(log)),
		"stream": ratelimit.Must(ratelimit.SlidingLog(stream)),
		"window": ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 12, Per: time.Minute, Block: block})),
		"gcra":   ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 12, Per: time.Minute, Block: block})),
	}
}

type manyTakes struct {
	harness
	many ratelimit.ManyTaker
	name string
}

// rule asks a rule again and again, while time goes on and back, and limits change.
func (m manyTakes) rule(name string, r ratelimit.Rule) {
	for i, step := range []struct {
		times int
		n     int64
		limit int64
		later time.Duration
	}{
		{1, 1, 12, 0},
		{3, 2, 12, time.Second},
		{3, 1, 12, 10 * time.Second}, // up to 10
		{5, 2, 12, 0},                // one passes, which is all
		{2, 12, 12, time.Second},
		{3, 1, 12, 40 * time.Second},
		{7, 2, 30, -20 * time.Second},
		{4, 3, 5, time.Second}, // fewer than are charged
		{9, 1, 12, time.Hour},
		{40, 1, 12, 0},
		{1_000_000, 1, 2_000_000, 0},
	} {
		m.name = fmt.Sprint(name, ", step ", i)
		tier, err := r.WithLimit(step.limit)
		if err != nil {
			m.Fatal(err)
		}
		m.same(ratelimit.Op{Rule: tier, N: min(step.n, tier.Burst()), Kind: ratelimit.Take}, step.times)
		m.clock.Advance(step.later)
	}
	for _, key := range []string{"many", "each"} {
		m.one(ratelimit.Reset, r, key, 0)
	}
}

// same takes so many times in one call from one key, and one by one from another. Of very
// many it looks at some.
func (m manyTakes) same(op ratelimit.Op, times int) {
	m.Helper()
	op.Key = "many"
	series, err := m.many.TakeMany(m.Context(), op, times)
	if err != nil {
		m.Fatalf("%s: TakeMany: %v", m.name, err)
	}
	op.Key = "each"
	if times > 100 {
		op.N *= int64(times)
		m.last(op, &series, times)
		return
	}
	ops := make([]ratelimit.Op, times)
	for i := range ops {
		ops[i] = op
		ops[i].Apart = true
	}
	for i, want := range m.do(ops...) {
		got := series.Result(i)
		if got.Allowed != (i < series.Passed) {
			m.Fatalf("%s: take %d is allowed, %d passed", m.name, i, series.Passed)
		}
		m.result(fmt.Sprint(m.name, ", take ", i), got, want)
	}
	if series.Passed > 0 {
		m.back(&series, op)
	}
}

// last compares the last of many that pass with a take of all their units.
func (m manyTakes) last(op ratelimit.Op, series *ratelimit.Series, times int) {
	m.Helper()
	want := m.do(op)[0]
	same(m.harness, m.name+": all passed", want.Allowed, series.Passed == times)
	got := series.Result(times - 1)
	same(m.harness, m.name+": Remaining", got.Remaining, want.Remaining)
	same(m.harness, m.name+": ResetAfter", got.ResetAfter, want.ResetAfter)
}

// result compares two results but for what tells lives of counters apart.
func (m manyTakes) result(name string, got, want ratelimit.Result) {
	m.Helper()
	same(m.harness, name+": N", got.Receipt.N, want.Receipt.N)
	same(m.harness, name+": At", got.Receipt.At, want.Receipt.At)
	got.Receipt, want.Receipt = ratelimit.Receipt{}, ratelimit.Receipt{}
	same(m.harness, name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
}

// back refunds two of the takes that passed, the last one first, from both keys, and asks
// what is left.
func (m manyTakes) back(series *ratelimit.Series, op ratelimit.Op) {
	m.Helper()
	for i := series.Passed - 1; i >= max(0, series.Passed-2); i-- {
		receipt := series.Result(i).Receipt
		if !m.refund(op.Rule, "many", receipt) {
			m.Fatalf("%s: take %d is not refunded", m.name, i)
		}
		if op.Rule.Algorithm() != "gcra" { // whose own key knows the level that was refunded
			receipt.Life = m.one(ratelimit.Add, op.Rule, "each", 1).Receipt.Life
			m.one(ratelimit.Add, op.Rule, "many", 1)
		}
		if !m.refund(op.Rule, "each", receipt) {
			m.Fatalf("%s: take %d of each is not refunded", m.name, i)
		}
	}
	m.result(m.name+", after refunds", m.one(ratelimit.Peek, op.Rule, "many", 1), m.one(ratelimit.Peek, op.Rule, "each", 1))
}

func (m manyTakes) invalid() {
	r := minute(m.harness, 3)
	good := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}
	peek, large, none := good, good, good
	peek.Kind, large.N, none.Key = ratelimit.Peek, 4, ""
	for _, c := range []struct {
		op    ratelimit.Op
		times int
		want  error
	}{
		{good, 0, ratelimit.ErrOp},
		{good, -1, ratelimit.ErrOp},
		{peek, 1, ratelimit.ErrOp},
		{none, 1, ratelimit.ErrOp},
		{large, 1, ratelimit.ErrTooLarge},
	} {
		if _, err := m.many.TakeMany(m.Context(), c.op, c.times); !errors.Is(err, c.want) {
			m.Errorf("TakeMany(%v, %d): error %v, want %v", c.op, c.times, err, c.want)
		}
	}
	same(m.harness, "count after calls that were refused", m.count(r, "k", 0), 0)
}
