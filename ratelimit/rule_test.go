package ratelimit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestRulesRefuse(t *testing.T) {
	block := ratelimit.Block{After: 1, For: time.Second}
	for _, c := range []struct {
		make func() (ratelimit.Rule, error)
		want string
	}{
		{func() (ratelimit.Rule, error) { return ratelimit.SlidingLog(ratelimit.LogOptions{}) }, "LogOptions.Per is 0s"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.SlidingLog(ratelimit.LogOptions{Limit: -1, Per: 1000})
		}, "LogOptions.Limit is -1, want 0 to 2^53"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 1<<53 + 1, Per: 1000})
		}, "LogOptions.Limit is"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.SlidingLog(ratelimit.LogOptions{Name: "a b", Per: 1000})
		}, `LogOptions.Name is "a b"`},
		{func() (ratelimit.Rule, error) { return ratelimit.SlidingLog(ratelimit.LogOptions{Per: 1001}) }, "LogOptions.Per is 1.001µs, want whole microseconds"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.SlidingLog(ratelimit.LogOptions{Per: 1000, Encoding: 7})
		}, "LogOptions.Encoding is Encoding(7)"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.SlidingLog(ratelimit.LogOptions{Per: 1000, Block: block})
		}, "LogOptions.Block is set, but Limit is 0"},
		{func() (ratelimit.Rule, error) { return ratelimit.FixedWindow(ratelimit.WindowOptions{Per: 1000}) }, "WindowOptions.Limit is 0, want 1 to 2^53"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1, Per: -1000})
		}, "WindowOptions.Per is -1µs"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1, Per: math.MaxInt64})
		}, "WindowOptions.Per is"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1, Per: 1000, Block: ratelimit.Block{After: -1}})
		}, "WindowOptions.Block.After is -1"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1, Per: 1000, Block: ratelimit.Block{After: 1 << 31}})
		}, "WindowOptions.Block.After is 2147483648"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1, Block: ratelimit.Block{After: 1}})
		}, "BucketOptions.Block.For is 0s"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1, Block: ratelimit.Block{For: time.Second}})
		}, "BucketOptions.Block.After is 0"},
		{func() (ratelimit.Rule, error) { return ratelimit.GCRA(ratelimit.GCRAOptions{Per: 1000}) }, "GCRAOptions.Limit is 0, want 1 to 2^53"},
		{func() (ratelimit.Rule, error) { return ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1}) }, "GCRAOptions.Per is 0s"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1, Per: 1000, Burst: -1})
		}, "GCRAOptions.Burst is -1"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1 << 53, Per: 1000})
		}, "GCRAOptions.Burst is 9007199254740992, want 1 to 9007199254740991"},
		{func() (ratelimit.Rule, error) {
			return ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 104_249, Per: 24 * time.Hour})
		}, "GCRAOptions.Burst is 104249, want 1 to 104248"},
		{func() (ratelimit.Rule, error) { return ratelimit.Throttle(0) }, "Throttle is 0s"},
		{func() (ratelimit.Rule, error) { return ratelimit.Throttle(time.Second + 1) }, "Throttle is 1.000000001s"},
	} {
		r, err := c.make()
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), "ratelimit: "), err)
		require.Zero(t, r)
	}
}

func TestRulesTellWhatStoresNeed(t *testing.T) {
	block := ratelimit.Block{After: 2, For: time.Hour}
	r := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Name: "api", Limit: 7, Per: time.Second, Burst: 20, Block: block}))
	require.Equal(t, "gcra(api: 7 per 1s, burst 20)", r.String())
	require.Equal(t, "gcra", r.Algorithm())
	require.EqualValues(t, 20, r.Burst())
	require.Equal(t, block, r.Block())
	require.Zero(t, r.Span())
	require.Equal(t, 2857143*time.Microsecond, r.Expiry(), "20/7 s, up to the microsecond")

	r = ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 7, Per: time.Second, Encoding: ratelimit.Stream}))
	require.Equal(t, []any{"log", ratelimit.Stream, time.Second, time.Second, int64(7)}, []any{r.Algorithm(), r.Encoding(), r.Span(), r.Expiry(), r.Burst()})
	require.Equal(t, "sorted set, stream, Encoding(9)", strings.Join([]string{ratelimit.SortedSet.String(), ratelimit.Stream.String(), ratelimit.Encoding(9).String()}, ", "))

	throttle := ratelimit.Must(ratelimit.Throttle(time.Second))
	require.Equal(t, ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1, Per: time.Second})), throttle)
	require.Equal(t, "window", throttle.Algorithm())
	require.Zero(t, throttle.Interval())
	require.Empty(t, ratelimit.Rule{}.Algorithm())
	require.Equal(t, "Algorithm(5)", (storage.GCRA + 1).String())
	require.Equal(t, []string{"store", "lease", "Source(7)"}, []string{ratelimit.FromStore.String(), ratelimit.FromLease.String(), ratelimit.Source(7).String()})
}

func TestTiersShareACounter(t *testing.T) {
	for name, r := range everyRule(10) {
		tier, err := r.WithLimit(20)
		require.NoError(t, err, name)
		require.Equal(t, r.Layout().ID, tier.Layout().ID, name)
		require.EqualValues(t, 20, tier.Limit())
		require.EqualValues(t, 20, tier.Burst())
		_, err = r.WithLimit(-1)
		require.ErrorContains(t, err, "WithLimit: limit is -1")
		_, err = r.WithLimit(1<<53 + 1)
		require.Error(t, err)
		_, err = r.WithLimit(0)
		require.Equal(t, name == "buckets" || name == "log", err == nil, name)
		_, err = r.WithBurst(3)
		require.Equal(t, name == "gcra", err == nil, name)
	}
	_, err := ratelimit.Rule{}.WithLimit(1)
	require.ErrorIs(t, err, ratelimit.ErrOp)

	r := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 10, Per: time.Second, Burst: 30}))
	tier := ratelimit.Must(r.WithLimit(15))
	require.EqualValues(t, 30, tier.Burst(), "a burst that was chosen stays")
	require.Equal(t, 2*time.Second, tier.Expiry())
	tier = ratelimit.Must(tier.WithBurst(0))
	require.EqualValues(t, 15, tier.Burst())
	require.EqualValues(t, 5, ratelimit.Must(tier.WithLimit(5)).Burst(), "and follows again")
	_, err = r.WithBurst(1 << 30)
	require.NoError(t, err)
	_, err = r.WithBurst(1 << 53)
	require.ErrorContains(t, err, "WithBurst: burst is")
}

func TestRulesThatDifferDoNotShareACounter(t *testing.T) {
	seen := map[uint64]ratelimit.Rule{}
	for _, r := range []ratelimit.Rule{
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{})), ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Name: "a"})), ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Per: time.Minute})),
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Interval: time.Second})), ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Span: time.Hour, Per: 600 * time.Second})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Per: time.Minute})), ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Per: time.Minute, Encoding: ratelimit.Stream})),
		ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1, Per: time.Minute})), ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1, Per: time.Minute})),
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1, Per: time.Hour})), ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Name: "a", Limit: 1, Per: time.Hour})),
	} {
		require.NotContains(t, seen, r.Layout().ID, r)
		seen[r.Layout().ID] = r
	}
}

// TestAResetIsANewLife has a reset and two equal charges in one microsecond.
func TestAResetIsANewLife(t *testing.T) {
	for name, r := range everyRule(10) {
		if name == "gcra" {
			continue // which compares states
		}
		h, ctx := newHand(), t.Context()
		l := newLimiter(t, newStore(t, memstore.Options{Clock: h.clock}), r)
		first, err := l.Take(ctx, "k", 2)
		require.NoError(t, err)
		require.NoError(t, l.Reset(ctx, "k"))
		second, err := l.Take(ctx, "k", 2)
		require.NoError(t, err)
		for _, want := range []struct {
			res ratelimit.Result
			ok  bool
		}{{first, false}, {second, true}, {second, false}} {
			ok, err := l.Refund(ctx, "k", want.res)
			require.NoError(t, err)
			require.Equal(t, want.ok, ok, name)
		}
	}
}

// TestReceiptsThatNobodyGave checks that a refund believes nothing.
func TestReceiptsThatNobodyGave(t *testing.T) {
	for name, r := range everyRule(10) {
		ctx := t.Context()
		l := newLimiter(t, newStore(t, memstore.Options{}), r)
		good, err := l.Take(ctx, "k", 2)
		require.NoError(t, err)
		for _, extreme := range []int64{math.MinInt64, -1, 0, 3, good.Receipt.At - 1, 1 << 53, math.MaxInt64} {
			for i := range 3 {
				bad := good
				*[]*int64{&bad.Receipt.N, &bad.Receipt.At, &bad.Receipt.Generation}[i] = extreme
				if bad.Receipt == good.Receipt {
					continue
				}
				ok, err := l.Refund(ctx, "k", bad)
				require.NoError(t, err)
				require.False(t, ok, "%s: %+v", name, bad.Receipt)
			}
		}
		ok, err := l.Refund(ctx, "k", good)
		require.NoError(t, err)
		require.True(t, ok, name)
	}
}

func TestWhichRulesShareACounter(t *testing.T) {
	buckets := ratelimit.BucketOptions{Limit: 10, Per: time.Minute}
	log := ratelimit.LogOptions{Limit: 10, Per: time.Minute}
	r := ratelimit.Must(ratelimit.Buckets(buckets))
	for _, like := range []func(o *ratelimit.BucketOptions){
		func(o *ratelimit.BucketOptions) { o.Limit = 3 },
		func(o *ratelimit.BucketOptions) { o.Expiry = time.Hour },
		func(o *ratelimit.BucketOptions) { o.Block = ratelimit.Block{After: 2, For: time.Second} },
	} {
		o := buckets
		like(&o)
		require.True(t, r.SharesCounter(ratelimit.Must(ratelimit.Buckets(o))), "%+v", o)
	}
	for _, unlike := range []func(o *ratelimit.BucketOptions){
		func(o *ratelimit.BucketOptions) { o.Name = "other" },
		func(o *ratelimit.BucketOptions) { o.Per = 2 * time.Minute },
		func(o *ratelimit.BucketOptions) { o.Interval = time.Second },
		func(o *ratelimit.BucketOptions) { o.Span = 1200 * time.Second },
	} {
		o := buckets
		unlike(&o)
		require.False(t, r.SharesCounter(ratelimit.Must(ratelimit.Buckets(o))), "%+v", o)
	}
	stream := log
	stream.Encoding = ratelimit.Stream
	require.False(t, r.SharesCounter(ratelimit.Must(ratelimit.SlidingLog(log))))
	require.False(t, ratelimit.Must(ratelimit.SlidingLog(log)).SharesCounter(ratelimit.Must(ratelimit.SlidingLog(stream))))
	bucket := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 10, Per: time.Minute}))
	require.True(t, bucket.SharesCounter(ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 3, Per: time.Minute, Burst: 7}))))

	same := r
	same.Layout().ID++ // as if the hashes of two were one, the other way round
	require.False(t, r.SharesCounter(same))
	clash := ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 10, Per: time.Minute}))
	clash.Layout().ID = r.Layout().ID
	require.False(t, r.SharesCounter(clash))
}
