package layer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
)

// opCounter counts the ops that a store runs.
type opCounter struct {
	ratelimit.Store
	ops int
}

func (c *opCounter) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	c.ops += len(ops)
	return c.Store.Do(ctx, ops)
}

func (c *opCounter) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(c.Do).DoOne(ctx, op)
}

// storePair has two stores with the same clock. One of them is behind a cache. Both run the same ops.
type storePair struct {
	*rapid.T
	clock         *forward
	alone, cached ratelimit.Store
	inner         *opCounter
	families      [][]ratelimit.Rule
	receipts      []receiptPair
	ops           int
	log           []string
}

type receiptPair struct {
	op            ratelimit.Op
	alone, cached ratelimit.Receipt
}

// ruleFamilies returns rules of all algorithms. The rules of a family share a counter.
func ruleFamilies() (all [][]ratelimit.Rule) {
	const s = time.Second
	for _, block := range []ratelimit.Block{{}, {After: 2, For: 3 * s}, {After: 1, For: s}} {
		for _, r := range []ratelimit.Rule{
			ratelimit.Buckets(ratelimit.BucketOptions{Limit: 6, Per: 4 * s, Interval: s, Span: 10 * s}).WithBlock(block),
			ratelimit.SlidingLog(6, 2*s).WithBlock(block),
			ratelimit.FixedWindow(6, 2*s).WithBlock(block),
			ratelimit.GCRA(6, 2*s).WithBlock(block),
			ratelimit.GCRA(6, s).WithBurst(8).WithName("burst").WithBlock(block),
		} {
			family := []ratelimit.Rule{r, r.WithLimit(3), r.WithLimit(11)}
			if r.Algorithm() == "gcra" {
				family = append(family, r.WithBurst(4))
			}
			all = append(all, family)
		}
	}
	return all
}

// newStorePair returns a pair whose ops mostly have rules of the same family.
func newStorePair(rt *rapid.T, family int, around func(ratelimit.Store, *forward) ratelimit.Store) *storePair {
	clock, all := newForwardClock(), ruleFamilies()
	w := &storePair{T: rt, clock: clock, alone: memoryOf(rt, clock), inner: &opCounter{Store: memoryOf(rt, clock)}}
	w.cached = around(w.inner, clock)
	other := all[(family+1+w.draw(len(all)-1))%len(all)]
	w.families = [][]ratelimit.Rule{all[family], all[family], other}
	return w
}

func (w *storePair) draw(n int) int { return rapid.IntRange(0, n-1).Draw(w.T, "") }

// step runs the same ops on both stores. It returns an error if their results differ.
func (w *storePair) step() error {
	w.clock.Advance([]time.Duration{0, time.Microsecond, 7 * time.Millisecond, 300 * time.Millisecond, time.Second}[w.draw(5)])
	key := fmt.Sprint("key", max(0, w.draw(7)-5))
	group, refunds := w.group(key)
	other := make([]ratelimit.Op, len(group))
	for i, op := range group {
		other[i] = op
		if r := refunds[i]; r != nil {
			group[i].Receipt, other[i].Receipt = r.cached, r.alone
		}
	}
	got, err := w.cached.Do(context.Background(), group)
	want, wantErr := w.alone.Do(context.Background(), other)
	w.log = append(w.log, fmt.Sprintf("%v %v: %+v, want %+v", w.clock.Now().UnixMicro(), group, got, want))
	if wantErr != nil || err != nil {
		if !errors.Is(err, errors.Unwrap(wantErr)) {
			return fmt.Errorf("error %w, want %w", err, wantErr)
		}
		return nil
	}
	w.ops += len(group)
	return w.compare(group, got, want)
}

// group draws random ops: usually a single take, and otherwise several ops of any kind. refunds has the receipts of
// the ops that are refunds.
func (w *storePair) group(key string) (ops []ratelimit.Op, refunds []*receiptPair) {
	n := max(1, w.draw(9)-5)
	for range n {
		family := w.families[w.draw(len(w.families))]
		op := ratelimit.Op{Key: key, Rule: family[w.draw(len(family))], N: int64(1 + w.draw(4)), Kind: ratelimit.Take}
		var refund *receiptPair
		switch w.draw(24) { // rapid draws small numbers more often than large ones
		case 13:
			op.Kind = ratelimit.Reset
		case 14, 21:
			op.Kind = ratelimit.Add
		case 11:
			op.Kind = ratelimit.Peek
		case 17, 18, 19:
			if len(w.receipts) > 0 {
				refund = &w.receipts[w.draw(len(w.receipts))]
				op.Kind, op.Key, op.Rule = ratelimit.Refund, refund.op.Key, refund.op.Rule
			}
		}
		if w.draw(8) == 5 {
			op.NewGroup = true
		}
		ops, refunds = append(ops, op), append(refunds, refund)
	}
	return ops, refunds
}

func (w *storePair) compare(ops []ratelimit.Op, got, want []ratelimit.Result) error {
	for i := range ops {
		g, h := got[i], want[i]
		if g.Receipt != (ratelimit.Receipt{}) && len(ops) == 1 {
			w.receipts = append(w.receipts, receiptPair{ops[i], h.Receipt, g.Receipt})
		}
		g.Receipt, h.Receipt = ratelimit.Receipt{}, ratelimit.Receipt{}
		switch {
		case g.Source == ratelimit.FromStore && g != h:
			return fmt.Errorf("op %d: the store returned %+v, want %+v", i, g, h)
		case g.Allowed != h.Allowed, g.RetryAfter > h.RetryAfter, g.Limit != h.Limit, g.Violated && !h.Violated, g.Blocked > h.Blocked:
			return fmt.Errorf("op %d: %+v, want %+v", i, g, h)
		}
	}
	return nil
}

// run makes some steps. It returns the first error.
func (w *storePair) run() error {
	for range rapid.IntRange(20, 80).Draw(w.T, "steps") {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

func TestDenyCacheIsExact(t *testing.T) {
	for i, family := range ruleFamilies() {
		t.Run(fmt.Sprintf("%v %v", family[0], family[0].Block()), func(t *testing.T) {
			ops, called := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				w := newStorePair(rt, i, func(inner ratelimit.Store, clock *forward) ratelimit.Store {
					return cacheAround(rt, inner, clock, DenyCacheOptions{MaxKeys: 16})
				})
				if err := w.run(); err != nil {
					for _, line := range w.log {
						rt.Log(line)
					}
					rt.Fatal(err)
				}
				ops, called = ops+w.ops, called+w.inner.ops
			})
			t.Logf("%d of %d ops went to the store", called, ops)
			require.Less(t, called, ops)
		})
	}
}
