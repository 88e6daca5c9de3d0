package ratelimit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRulesRefuse(t *testing.T) {
	block := Block{After: 1, For: time.Second}
	for _, c := range []struct {
		make func() (Rule, error)
		want string
	}{
		{func() (Rule, error) { return SlidingLog(LogOptions{}) }, "LogOptions.Per is 0s"},
		{func() (Rule, error) { return SlidingLog(LogOptions{Limit: -1, Per: 1000}) }, "LogOptions.Limit is -1, want 0 to 2^53"},
		{func() (Rule, error) { return SlidingLog(LogOptions{Limit: 1<<53 + 1, Per: 1000}) }, "LogOptions.Limit is"},
		{func() (Rule, error) { return SlidingLog(LogOptions{Name: "a b", Per: 1000}) }, `LogOptions.Name is "a b"`},
		{func() (Rule, error) { return SlidingLog(LogOptions{Per: 1001}) }, "LogOptions.Per is 1.001µs, want whole microseconds"},
		{func() (Rule, error) { return SlidingLog(LogOptions{Per: 1000, Encoding: 7}) }, "LogOptions.Encoding is Encoding(7)"},
		{func() (Rule, error) { return SlidingLog(LogOptions{Per: 1000, Block: block}) }, "LogOptions.Block is set, but Limit is 0"},
		{func() (Rule, error) { return FixedWindow(WindowOptions{Per: 1000}) }, "WindowOptions.Limit is 0, want 1 to 2^53"},
		{func() (Rule, error) { return FixedWindow(WindowOptions{Limit: 1, Per: -1000}) }, "WindowOptions.Per is -1µs"},
		{func() (Rule, error) { return FixedWindow(WindowOptions{Limit: 1, Per: math.MaxInt64}) }, "WindowOptions.Per is"},
		{func() (Rule, error) {
			return FixedWindow(WindowOptions{Limit: 1, Per: 1000, Block: Block{After: -1}})
		}, "WindowOptions.Block.After is -1"},
		{func() (Rule, error) {
			return FixedWindow(WindowOptions{Limit: 1, Per: 1000, Block: Block{After: 1 << 31}})
		}, "WindowOptions.Block.After is 2147483648"},
		{func() (Rule, error) { return Buckets(BucketOptions{Limit: 1, Block: Block{After: 1}}) }, "BucketOptions.Block.For is 0s"},
		{func() (Rule, error) { return Buckets(BucketOptions{Limit: 1, Block: Block{For: time.Second}}) }, "BucketOptions.Block.After is 0"},
		{func() (Rule, error) { return GCRA(GCRAOptions{Per: 1000}) }, "GCRAOptions.Limit is 0, want 1 to 2^53"},
		{func() (Rule, error) { return GCRA(GCRAOptions{Limit: 1}) }, "GCRAOptions.Per is 0s"},
		{func() (Rule, error) { return GCRA(GCRAOptions{Limit: 1, Per: 1000, Burst: -1}) }, "GCRAOptions.Burst is -1"},
		{func() (Rule, error) { return GCRA(GCRAOptions{Limit: 1 << 53, Per: 1000}) }, "GCRAOptions.Burst is 9007199254740992, want 1 to 9007199254740991"},
		{func() (Rule, error) { return GCRA(GCRAOptions{Limit: 104_249, Per: 24 * time.Hour}) }, "GCRAOptions.Burst is 104249, want 1 to 104248"},
		{func() (Rule, error) { return Throttle(0) }, "Throttle is 0s"},
		{func() (Rule, error) { return Throttle(time.Second + 1) }, "Throttle is 1.000000001s"},
	} {
		r, err := c.make()
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), "ratelimit: "), err)
		require.Zero(t, r)
	}
}

func TestRulesTellWhatStoresNeed(t *testing.T) {
	block := Block{After: 2, For: time.Hour}
	r := Must(GCRA(GCRAOptions{Name: "api", Limit: 7, Per: time.Second, Burst: 20, Block: block}))
	require.Equal(t, "gcra(api: 7 per 1s, burst 20)", r.String())
	require.Equal(t, "gcra", r.Algorithm())
	require.EqualValues(t, 20, r.Burst())
	require.Equal(t, block, r.Block())
	require.Zero(t, r.Span())
	require.Equal(t, 2857143*time.Microsecond, r.Expiry(), "20/7 s, up to the microsecond")

	r = Must(SlidingLog(LogOptions{Limit: 7, Per: time.Second, Encoding: Stream}))
	require.Equal(t, []any{"log", Stream, time.Second, time.Second, int64(7)}, []any{r.Algorithm(), r.Encoding(), r.Span(), r.Expiry(), r.Burst()})
	require.Equal(t, "sorted set, stream, Encoding(9)", strings.Join([]string{SortedSet.String(), Stream.String(), Encoding(9).String()}, ", "))

	throttle := Must(Throttle(time.Second))
	require.Equal(t, Must(FixedWindow(WindowOptions{Limit: 1, Per: time.Second})), throttle)
	require.Equal(t, "window", throttle.Algorithm())
	require.Zero(t, throttle.Interval())
	require.Empty(t, Rule{}.Algorithm())
	require.Equal(t, []string{"store", "lease", "Source(7)"}, []string{FromStore.String(), FromLease.String(), Source(7).String()})
}

func TestTiersShareACounter(t *testing.T) {
	for name, r := range everyRule(10) {
		tier, err := r.WithLimit(20)
		require.NoError(t, err, name)
		require.Equal(t, r.id, tier.id, name)
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
	_, err := Rule{}.WithLimit(1)
	require.ErrorIs(t, err, ErrOp)

	r := Must(GCRA(GCRAOptions{Limit: 10, Per: time.Second, Burst: 30}))
	tier := Must(r.WithLimit(15))
	require.EqualValues(t, 30, tier.Burst(), "a burst that was chosen stays")
	require.Equal(t, 2*time.Second, tier.Expiry())
	tier = Must(tier.WithBurst(0))
	require.EqualValues(t, 15, tier.Burst())
	require.EqualValues(t, 5, Must(tier.WithLimit(5)).Burst(), "and follows again")
	_, err = r.WithBurst(1 << 30)
	require.NoError(t, err)
	_, err = r.WithBurst(1 << 53)
	require.ErrorContains(t, err, "WithBurst: burst is")
}

func TestRulesThatDifferDoNotShareACounter(t *testing.T) {
	seen := map[uint64]Rule{}
	for _, r := range []Rule{
		Must(Buckets(BucketOptions{})), Must(Buckets(BucketOptions{Name: "a"})), Must(Buckets(BucketOptions{Per: time.Minute})),
		Must(Buckets(BucketOptions{Interval: time.Second})), Must(Buckets(BucketOptions{Span: time.Hour, Per: 600 * time.Second})),
		Must(SlidingLog(LogOptions{Per: time.Minute})), Must(SlidingLog(LogOptions{Per: time.Minute, Encoding: Stream})),
		Must(FixedWindow(WindowOptions{Limit: 1, Per: time.Minute})), Must(GCRA(GCRAOptions{Limit: 1, Per: time.Minute})),
		Must(GCRA(GCRAOptions{Limit: 1, Per: time.Hour})), Must(GCRA(GCRAOptions{Name: "a", Limit: 1, Per: time.Hour})),
	} {
		require.NotContains(t, seen, r.id, r)
		seen[r.id] = r
	}
}

// TestAResetIsANewLife has a reset and two equal charges in one microsecond.
func TestAResetIsANewLife(t *testing.T) {
	for name, r := range everyRule(10) {
		if name == "gcra" {
			continue // which compares states
		}
		h, ctx := newHand(), t.Context()
		l := newLimiter(t, newMemory(t, MemoryOptions{Clock: h.clock}), r)
		first, err := l.Take(ctx, "k", 2)
		require.NoError(t, err)
		require.NoError(t, l.Reset(ctx, "k"))
		second, err := l.Take(ctx, "k", 2)
		require.NoError(t, err)
		for _, want := range []struct {
			res Result
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
		l := newLimiter(t, newMemory(t, MemoryOptions{}), r)
		good, err := l.Take(ctx, "k", 2)
		require.NoError(t, err)
		for _, extreme := range []int64{math.MinInt64, -1, 0, 3, good.Receipt.At - 1, 1 << 53, math.MaxInt64} {
			for i := range 3 {
				bad := good
				*[]*int64{&bad.Receipt.N, &bad.Receipt.At, &bad.Receipt.Life}[i] = extreme
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
	buckets := BucketOptions{Limit: 10, Per: time.Minute}
	log := LogOptions{Limit: 10, Per: time.Minute}
	r := Must(Buckets(buckets))
	for _, like := range []func(o *BucketOptions){
		func(o *BucketOptions) { o.Limit = 3 },
		func(o *BucketOptions) { o.Expiry = time.Hour },
		func(o *BucketOptions) { o.Block = Block{After: 2, For: time.Second} },
	} {
		o := buckets
		like(&o)
		require.True(t, r.SharesCounter(Must(Buckets(o))), "%+v", o)
	}
	for _, unlike := range []func(o *BucketOptions){
		func(o *BucketOptions) { o.Name = "other" },
		func(o *BucketOptions) { o.Per = 2 * time.Minute },
		func(o *BucketOptions) { o.Interval = time.Second },
		func(o *BucketOptions) { o.Span = 1200 * time.Second },
	} {
		o := buckets
		unlike(&o)
		require.False(t, r.SharesCounter(Must(Buckets(o))), "%+v", o)
	}
	stream := log
	stream.Encoding = Stream
	require.False(t, r.SharesCounter(Must(SlidingLog(log))))
	require.False(t, Must(SlidingLog(log)).SharesCounter(Must(SlidingLog(stream))))
	bucket := Must(GCRA(GCRAOptions{Limit: 10, Per: time.Minute}))
	require.True(t, bucket.SharesCounter(Must(GCRA(GCRAOptions{Limit: 3, Per: time.Minute, Burst: 7}))))

	same := r
	same.id++ // as if the hashes of two were one, the other way round
	require.False(t, r.SharesCounter(same))
	clash := Must(FixedWindow(WindowOptions{Limit: 10, Per: time.Minute}))
	clash.id = r.id
	require.False(t, r.SharesCounter(clash))
}
