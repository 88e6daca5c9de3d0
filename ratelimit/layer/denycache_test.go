package layer

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// denyTest is a cache around a spy. The test moves the clock of both.
type denyTest struct {
	*testing.T
	*denyCache
	spy   *storespy.Spy
	clock *forward
}

func newDenyTest(t *testing.T, o DenyCacheOptions) *denyTest {
	clock := newForwardClock()
	s := &storespy.Spy{Store: memoryOf(t, clock)}
	return &denyTest{t, cacheAround(t, s, clock, o), s, clock}
}

// do runs ops. It requires that they cause this number of calls of the store.
func (d *denyTest) do(calls int, ops ...ratelimit.Op) []ratelimit.Result {
	d.Helper()
	d.spy.Drain()
	results, err := d.Do(d.Context(), ops)
	require.NoError(d, err)
	require.Len(d, d.spy.Drain(), calls)
	return results
}

func (d *denyTest) take(calls int, r ratelimit.Rule, n int64) ratelimit.Result {
	d.Helper()
	d.spy.Drain()
	res, err := d.DoOne(d.Context(), take(r, "k", n))
	require.NoError(d, err)
	require.Len(d, d.spy.Drain(), calls)
	return res
}

func TestDenialIsRepeated(t *testing.T) {
	for _, r := range localRules(10) {
		d := newDenyTest(t, DenyCacheOptions{})
		d.take(1, r, 7)
		denied := d.take(1, r, 5)
		require.False(t, denied.Allowed)
		for _, n := range []int64{5, 6, 10} {
			res := d.take(0, r, n)
			require.Equal(t, ratelimit.FromDenyCache, res.Source)
			require.False(t, res.Allowed)
			require.True(t, res.Violated)
			require.Equal(t, denied.Limit, res.Limit)
			require.Equal(t, denied.Remaining, res.Remaining)
			require.Equal(t, denied.ResetAfter, res.ResetAfter)
			if n == 5 {
				require.Equal(t, denied.RetryAfter, res.RetryAfter)
			}
			require.Error(t, res.Err())
		}
		d.clock.Advance(denied.RetryAfter - time.Microsecond)
		require.Equal(t, time.Microsecond, d.take(0, r, 5).RetryAfter)
		d.clock.Advance(time.Microsecond)
		require.True(t, d.take(1, r, 5).Allowed, "%v", r)

		d = newDenyTest(t, DenyCacheOptions{})
		d.take(1, r, 7)
		d.take(1, r, 5)
		require.True(t, d.take(1, r, 3).Allowed, "less than what was denied")
		if r.Algorithm() != "gcra" { // a charge of a GCRA ends its denials
			d.take(0, r, 5)
			require.True(t, d.take(1, r.WithLimit(15), 5).Allowed, "a higher limit")
		}
		_, err := d.DoOne(t.Context(), take(r, "k", 11))
		require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	}
}

func TestTakeOfTheLastUnitIsADenialOfTheNext(t *testing.T) {
	for _, r := range localRules(5) {
		d := newDenyTest(t, DenyCacheOptions{})
		var last ratelimit.Result
		for range 5 {
			last = d.take(1, r, 1)
			require.True(t, last.Allowed)
		}
		res := d.take(0, r, 1)
		require.Equal(t, last.RetryAfter, res.RetryAfter, "%v", r)
		require.Zero(t, res.Remaining)
		d.clock.Advance(last.RetryAfter)
		require.True(t, d.take(1, r, 1).Allowed)
	}
}

// TestDenialOfAWindowIncludesSmallerTakes checks that the denial of a take in a window also denies a smaller take, if
// even fewer units remain.
func TestDenialOfAWindowIncludesSmallerTakes(t *testing.T) {
	d := newDenyTest(t, DenyCacheOptions{})
	d.take(1, windowOf(10), 7)
	d.take(1, windowOf(10), 9)
	require.False(t, d.take(0, windowOf(10), 4).Allowed, "nothing comes back before the window's end")
	require.True(t, d.take(1, windowOf(10), 3).Allowed)
}

func TestStoreSeesDenialsUntilItsBlock(t *testing.T) {
	r := ratelimit.GCRA(2, time.Minute).WithBlock(ratelimit.Block{After: 3, For: time.Hour})
	d := newDenyTest(t, DenyCacheOptions{})
	d.take(1, r, 2)
	for range 3 {
		require.False(t, d.take(1, r, 1).Allowed)
	}
	d.clock.Advance(2 * time.Minute)
	for _, n := range []int64{1, 2} {
		res := d.take(0, r, n)
		require.Equal(t, 58*time.Minute, res.RetryAfter)
		require.Equal(t, 58*time.Minute, res.Blocked)
		require.Zero(t, res.Remaining)
	}
	_, err := d.DoOne(t.Context(), take(r, "k", 0))
	require.ErrorIs(t, err, ratelimit.ErrOp)
	d.clock.Advance(58 * time.Minute)
	require.True(t, d.take(1, r, 2).Allowed)
	require.False(t, d.take(1, r, 1).Allowed, "the store counts denials anew")
	require.False(t, d.take(1, r, 1).Allowed)
}

func TestDenialOfAGroupIsRepeated(t *testing.T) {
	second, day := windowOf(2), ratelimit.SlidingLog(100, 24*time.Hour)
	group := []ratelimit.Op{take(day, "k", 1), take(second, "k", 1)}
	d := newDenyTest(t, DenyCacheOptions{})
	for range 2 {
		require.True(t, d.do(1, group...)[0].Allowed)
	}
	denied := d.do(1, group...) // the cache knows no denial by the rule day
	again := d.do(0, group...)
	for i := range denied {
		require.Equal(t, ratelimit.FromDenyCache, again[i].Source)
		again[i].Source = ratelimit.FromStore
	}
	require.Equal(t, denied, again)
	require.False(t, again[0].Violated)
	require.EqualValues(t, 98, again[0].Remaining)

	require.True(t, d.take(1, day, 1).Allowed, "it denies nothing by itself")
	d.do(0, group[1:]...)
	d.do(1, append(group, ratelimit.Op{Rule: day, Key: "k", N: 1, Kind: ratelimit.Peek})...)
	d.do(1, append(group, take(gcra(5), "k", 1))...) // the cache knew no denial by this rule
	d.do(0, append(group, take(gcra(5), "k", 1))...)

	// The cache denies some groups of a list, and the others go to the store in a single call.
	all := d.do(1, append(group, take(second, "other", 1), take(second, "k", 1), take(day, "another", 1))...)
	require.Equal(t, ratelimit.FromDenyCache, all[1].Source)
	require.True(t, all[2].Allowed)
	require.Equal(t, ratelimit.FromDenyCache, all[3].Source)
	require.EqualValues(t, 99, all[4].Remaining)
	d.clock.Advance(time.Minute)
	require.True(t, d.do(1, group...)[0].Allowed)
}

// TestDenialsOfAConcurrentAreNotRepeated releases units in another process, which the cache cannot see.
func TestDenialsOfAConcurrentAreNotRepeated(t *testing.T) {
	r, day := ratelimit.Concurrent(1), ratelimit.SlidingLog(2, 24*time.Hour)
	d := newDenyTest(t, DenyCacheOptions{})
	held := d.take(1, r, 1)
	require.False(t, d.take(1, r, 1).Allowed)
	group := []ratelimit.Op{take(r, "k", 1), take(day, "k", 1)}
	require.False(t, d.do(1, group...)[0].Allowed)
	_, err := d.spy.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: held.Receipt})
	require.NoError(t, err)
	require.True(t, d.do(1, group...)[0].Allowed)

	group[0] = take(r.WithLimit(3), "k", 1)
	require.True(t, d.take(1, day, 1).Allowed)
	require.False(t, d.do(1, group...)[0].Allowed)
	require.True(t, d.do(0, group...)[1].Violated, "a denial by another rule is repeated")
	require.True(t, d.take(1, group[0].Rule, 2).Allowed)
}

// TestDenialOfATentativeTakeIsNotRepeated refunds a charge in another process, which the cache does not notice.
func TestDenialOfATentativeTakeIsNotRepeated(t *testing.T) {
	d := newDenyTest(t, DenyCacheOptions{})
	op := take(ratelimit.SlidingLog(1, time.Hour), "k", 1)
	op.Tentative = true
	charged := d.do(1, op)[0]
	require.False(t, d.do(1, op)[0].Allowed)
	_, err := d.spy.DoOne(t.Context(), ratelimit.Op{Rule: op.Rule, Key: "k", Kind: ratelimit.Refund, Receipt: charged.Receipt})
	require.NoError(t, err)
	require.True(t, d.do(1, op)[0].Allowed)
}

func TestFullSetForgetsTheDenialThatEndsFirst(t *testing.T) {
	d := newDenyTest(t, DenyCacheOptions{MaxKeys: 8})
	key := func(i int) string { return fmt.Sprint("key", i) }
	for i := range 9 {
		op := take(windowOf(1), key(i), 1)
		require.True(t, d.do(1, op)[0].Allowed)
		d.clock.Advance(time.Second)
	}
	for i := 1; i < 9; i++ {
		require.False(t, d.do(0, take(windowOf(1), key(i), 1))[0].Allowed)
	}
	require.False(t, d.do(1, take(windowOf(1), key(0), 1))[0].Allowed)
	d.clock.Advance(time.Hour)
	require.True(t, d.do(1, take(windowOf(1), "new", 1))[0].Allowed)
	require.False(t, d.do(0, take(windowOf(1), "new", 1))[0].Allowed, "in the place of one that has ended")
}

// TestKeysWithOneHashAreDistinct checks that a set distinguishes keys that have the same tag.
func TestKeysWithOneHashAreDistinct(t *testing.T) {
	s, r := &newDenialTable(1).sets[0], windowOf(1)
	for i := range ways {
		s.add(7, &denial{key: fmt.Sprint(i), rule: r, n: int64(i), until: time.Hour}, 0, 0)
	}
	for i := range ways {
		require.EqualValues(t, i, s.find(7, fmt.Sprint(i), r, 0).n)
	}
	require.Nil(t, s.find(7, "another", r, 0))
	other := ratelimit.FixedWindow(1, time.Minute).WithName("other")
	require.Nil(t, s.find(7, "1", other, 0))
	require.Nil(t, s.find(7, "1", r, time.Hour))

	s.add(7, &denial{key: "ended", rule: r, n: 1, until: time.Second}, 0, time.Second)
	for i := range ways {
		require.NotNil(t, s.find(7, fmt.Sprint(i), r, time.Second), "an ended denial takes no place")
	}
}

// TestKeyIsCloned checks that a denial does not keep a large string in memory if its key is a part of the string.
func TestKeyIsCloned(t *testing.T) {
	s, r := &newDenialTable(1).sets[0], windowOf(1)
	large := strings.Repeat("k", 1<<20)
	s.add(7, &denial{key: large[:1], rule: r, n: 1, until: time.Hour}, 0, 0)
	require.Equal(t, "k", s.find(7, "k", r, 0).key)
	require.False(t, unsafe.StringData(large) == unsafe.StringData(s.find(7, "k", r, 0).key), "the large string is not kept alive")
	before := s.find(7, "k", r, 0)
	s.add(7, &denial{key: large[1:2], rule: r, n: 1, until: 2 * time.Hour}, 0, 0)
	require.NotSame(t, before, s.find(7, "k", r, 0))
	require.Equal(t, time.Duration(2)*time.Hour, s.find(7, "k", r, 0).until)
}

// TestDenialsOfOneRule checks which of two denials a set keeps if both have the same key and rule.
func TestDenialsOfOneRule(t *testing.T) {
	r := windowOf(10)
	for name, tt := range map[string]struct{ first, second, want denial }{
		"the one that denies more stays": {denial{rule: r, n: 1, until: 1}, denial{rule: r, n: 5, until: 9}, denial{n: 1, until: 1}},
		"and comes":                      {denial{rule: r, n: 5, until: 9}, denial{rule: r, n: 1, until: 1}, denial{n: 1, until: 1}},
		"the longer of equals":           {denial{rule: r, n: 1, until: 1}, denial{rule: r, n: 1, until: 9}, denial{n: 1, until: 9}},
		"stays":                          {denial{rule: r, n: 1, until: 9}, denial{rule: r, n: 1, until: 1}, denial{n: 1, until: 9}},
	} {
		s := &newDenialTable(1).sets[0]
		s.add(7, &tt.first, 0, 0)
		s.add(7, &tt.second, 0, 0)
		got := s.find(7, "", r, 0)
		require.Equal(t, tt.want.n, got.n, name)
		require.Equal(t, tt.want.until, got.until, name)
		s.add(7, &denial{rule: r, n: 1, until: 100}, 1, 0)
		require.NotEqualValues(t, 100, s.find(7, "", r, 0).until, "of another version")
	}
}

// TestConcurrentTakesReachTheLimit checks that concurrent callers get exactly the units of the limit. They use two
// rules, takes of several units, refunds and the real clock.
func TestConcurrentTakesReachTheLimit(t *testing.T) {
	m, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	c, err := newDenyCache(m, DenyCacheOptions{MaxKeys: 8})
	require.NoError(t, err)
	long := ratelimit.FixedWindow(500, time.Hour)
	half := long.WithLimit(250)
	var units atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 2000 {
				r, n := long, int64(1+(g+i)%3)
				if i%4 == 0 {
					r = half
				}
				res, err := c.DoOne(t.Context(), take(r, "k", n))
				if err != nil {
					t.Error(err)
				}
				if !res.Allowed {
					continue
				}
				if i%5 == 0 {
					back, err := c.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: res.Receipt})
					if err != nil || !back.Allowed {
						t.Error(back, err)
					}
					continue
				}
				units.Add(n)
			}
		})
	}
	wg.Wait()
	for { // takes the units that late refunds have given back
		res, err := c.DoOne(t.Context(), take(long, "k", 1))
		require.NoError(t, err)
		if !res.Allowed {
			break
		}
		units.Add(1)
	}
	require.EqualValues(t, 500, units.Load())
}

func TestCachedDenialAllocatesNothing(t *testing.T) {
	d := newDenyTest(t, DenyCacheOptions{})
	d.take(1, windowOf(1), 1)
	op, ctx := take(windowOf(1), "k", 1), t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if res, err := d.DoOne(ctx, op); err != nil || res.Allowed {
			t.Fatal(res, err)
		}
	}))
}
