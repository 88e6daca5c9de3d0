package ratelimit_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestRulesRefuse(t *testing.T) {
	block := ratelimit.Block{After: 1, For: time.Second}
	for _, c := range []struct {
		rule ratelimit.Rule
		want string
	}{
		{ratelimit.Rule{}, "Rule is the zero Rule"},
		{ratelimit.Rule{}.WithLimit(1), "Rule is the zero Rule"},
		{ratelimit.Rule{}.WithName("a"), "Rule is the zero Rule"},
		{ratelimit.PerSecond(0), "PerSecond.Limit is 0, want 1 to 2^53"},
		{ratelimit.PerMinute(-1), "PerMinute.Limit is -1"},
		{ratelimit.PerHour(1<<53 + 1), "PerHour.Limit is 9007199254740993"},
		{ratelimit.PerDay(0), "PerDay.Limit is 0"},
		{ratelimit.Per(0, time.Second), "Per.Limit is 0"},
		{ratelimit.Per(5, 0), "Per.Per is 0s, want 1µs to 876000h0m0s"},
		{ratelimit.Per(5, 1), "Per.Per is 1ns, want whole microseconds"},
		{ratelimit.Per(5, ratelimit.MaxDuration+time.Hour), "Per.Per is 876001h0m0s"},
		{ratelimit.SlidingLog(1, 0), "SlidingLog.Per is 0s"},
		{ratelimit.SlidingLog(0, 1000), "SlidingLog.Limit is 0, want 1 to 2^53"},
		{ratelimit.SlidingLog(-1, 1000), "SlidingLog.Limit is -1, want 1 to 2^53"},
		{ratelimit.SlidingLog(1<<53+1, 1000), "SlidingLog.Limit is"},
		{ratelimit.SlidingLog(1, 1001), "SlidingLog.Per is 1.001µs, want whole microseconds"},
		{ratelimit.SlidingLog(1, 1000).WithName("a b"), `Rule.Name is "a b"`},
		{ratelimit.PerMinute(5).WithName(`a"b`), `Rule.Name is "a\"b"`},
		{ratelimit.PerMinute(5).WithName("a.b"), `Rule.Name is "a.b"`},
		{ratelimit.PerMinute(5).WithName(strings.Repeat("a", 65)), "Rule.Name"},
		{ratelimit.PerMinute(5).WithName("a\n"), "Rule.Name"},
		{ratelimit.PerMinute(5).WithStream(), "Rule.Stream is for a SlidingLog only"},
		{ratelimit.PerMinute(5).WithBurst(5), "Rule.Burst is for a GCRA only"},
		{ratelimit.PerMinute(5).WithLimit(0), "Rule.Limit is 0, want 1 to 2^53"},
		{ratelimit.PerMinute(0).WithLimit(5), "PerMinute.Limit is 0"},
		{ratelimit.SlidingLog(1, 1000).WithoutLimit().WithBlock(block), "Rule.Block is set, but there is no limit"},
		{ratelimit.SlidingLog(1, 1000).WithBlock(block).WithoutLimit(), "Rule.Limit is missing, and a Block needs one"},
		{ratelimit.FixedWindow(1, 1000).WithoutLimit(), "Rule.Limit is missing"},
		{ratelimit.FixedWindow(0, 1000), "FixedWindow.Limit is 0, want 1 to 2^53"},
		{ratelimit.FixedWindow(1, -1000), "FixedWindow.Per is -1µs"},
		{ratelimit.FixedWindow(1, math.MaxInt64), "FixedWindow.Per is"},
		{ratelimit.FixedWindow(1, 1000).WithBlock(ratelimit.Block{After: -1}), "Rule.Block.After is -1"},
		{ratelimit.FixedWindow(1, 1000).WithBlock(ratelimit.Block{After: 1 << 31}), "Rule.Block.After is 2147483648"},
		{ratelimit.FixedWindow(1, 1000).WithBlock(ratelimit.Block{After: 1}), "Rule.Block.For is 0s"},
		{ratelimit.FixedWindow(1, 1000).WithBlock(ratelimit.Block{For: time.Second}), "Rule.Block.After is 0"},
		{ratelimit.GCRA(0, 1000), "GCRA.Limit is 0, want 1 to 2^53"},
		{ratelimit.GCRA(1, 0), "GCRA.Per is 0s"},
		{ratelimit.GCRA(1, 1000).WithBurst(-1), "Rule.Burst is -1"},
		{ratelimit.GCRA(1, 1000).WithBurst(0), "Rule.Burst is 0"},
		{ratelimit.GCRA(1<<53, 1000), "Rule.Burst is 9007199254740992, want 1 to 9007199254740991"},
		{ratelimit.GCRA(104_249, 24*time.Hour), "Rule.Burst is 104249, want 1 to 104248"},
		{ratelimit.GCRA(104_249, 24*time.Hour).WithName("a"), "Rule.Burst is 104249, want 1 to 104248"},
		{ratelimit.Throttle(0), "Throttle.Per is 0s"},
		{ratelimit.Calendar(0, ratelimit.Day, time.UTC), "Calendar.Limit is 0, want 1 to 2^53"},
		{ratelimit.Calendar(1, 0, time.UTC), "Calendar.Period is Period(0), want Day, Week or Month"},
		{ratelimit.Calendar(1, ratelimit.Month+1, time.UTC), "Calendar.Period is Period(4), want Day, Week or Month"},
		{ratelimit.Calendar(1, ratelimit.Day, nil), "Calendar.Location is nil, want one such as time.UTC"},
		{ratelimit.Calendar(1, ratelimit.Day, time.Local), `Calendar.Location is "Local", want one with the same name on all machines`},
		{ratelimit.Calendar(1, ratelimit.Day, time.FixedZone("", 3600)), `Calendar.Location is "", want one with the same name on all machines`},
		{ratelimit.Throttle(time.Second + 1), "Throttle.Per is 1.000000001s"},
	} {
		err := c.rule.Err()
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), "ratelimit: "), err)
		require.Empty(t, c.rule.Algorithm())
		var wrong *ratelimit.OptionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, strings.Fields(c.want)[0], wrong.Field)

		store := newStore(t, memstore.Options{})
		_, err = ratelimit.NewLimiter(store, c.rule)
		require.ErrorContains(t, err, c.want)
		_, err = store.Do(t.Context(), []ratelimit.Op{{Rule: c.rule, Key: "k", N: 1, Kind: ratelimit.Take}})
		require.ErrorIs(t, err, ratelimit.ErrOp)
		require.ErrorContains(t, err, c.want)
	}
	require.NoError(t, ratelimit.GCRA(104_249, 24*time.Hour).WithName("a").WithBurst(10).Err(), "a burst can be lowered afterwards")
}

func TestRuleAccessors(t *testing.T) {
	block := ratelimit.Block{After: 2, For: time.Hour}
	r := ratelimit.GCRA(7, time.Second).WithBurst(20).WithName("api").WithBlock(block)
	require.Equal(t, "gcra(api: 7 per 1s, burst 20)", r.String())
	require.Equal(t, "gcra", r.Algorithm())
	require.EqualValues(t, 20, r.Burst())
	require.Equal(t, block, r.Block())
	require.Zero(t, r.Span())
	require.Equal(t, 2857143*time.Microsecond, r.Expiry(), "20/7 s, up to the microsecond")

	r = ratelimit.SlidingLog(7, time.Second).WithStream()
	require.Equal(t, []any{"log", true, time.Second, time.Second, int64(7)}, []any{r.Algorithm(), r.Layout().Stream, r.Span(), r.Expiry(), r.Burst()})
	require.Equal(t, "log(7 per 1s, stream)", r.String())

	east := time.FixedZone("East", 3600)
	r = ratelimit.Calendar(7, ratelimit.Month, east)
	require.Equal(t, []any{"window", "month", 31 * 24 * time.Hour, r.Per(), 32 * 24 * time.Hour}, []any{r.Algorithm(), r.Name(), r.Per(), r.Span(), r.Expiry()})
	require.Equal(t, "window(7 per month in East)", r.String())
	require.Equal(t, "window(api: 7 per month in East)", r.WithName("api").String())
	require.Equal(t, r, r.WithName("api").WithName(""))
	require.Equal(t, r, ratelimit.Calendar(7, ratelimit.Month, east))
	for _, other := range []ratelimit.Rule{ratelimit.Calendar(7, ratelimit.Month, time.UTC), ratelimit.Calendar(7, ratelimit.Day, east), ratelimit.FixedWindow(7, r.Per())} {
		require.False(t, sharesCounter(r, other), "%v", other)
	}

	throttle := ratelimit.Throttle(time.Second)
	require.Equal(t, ratelimit.FixedWindow(1, time.Second), throttle)
	require.NoError(t, throttle.Err())
	require.Equal(t, "window", throttle.Algorithm())
	require.Zero(t, throttle.Interval())
	require.Empty(t, ratelimit.Rule{}.Algorithm())
	require.Equal(t, []string{"store", "prepaid", "Source(7)"}, []string{ratelimit.FromStore.String(), ratelimit.FromPrepaid.String(), ratelimit.Source(7).String()})
}

func TestTiersShareACounter(t *testing.T) {
	for name, r := range everyRule(10) {
		tier := r.WithLimit(20)
		require.Equal(t, r.Layout().ID, tier.Layout().ID, name)
		require.EqualValues(t, 20, tier.Limit())
		require.EqualValues(t, 20, tier.Burst())
		require.ErrorContains(t, r.WithLimit(-1).Err(), "Rule.Limit is -1")
		require.Error(t, r.WithLimit(1<<53+1).Err())
		require.Error(t, r.WithLimit(0).Err())
		none := r.WithoutLimit()
		require.Equal(t, name == "buckets" || name == "log", none.Err() == nil, name)
		if none.Err() == nil {
			require.True(t, sharesCounter(r, none))
			require.Equal(t, r, none.WithLimit(10))
		}
		require.Equal(t, name == "gcra", r.WithBurst(3).Err() == nil, name)
	}

	r := ratelimit.GCRA(10, time.Second).WithBurst(30)
	tier := r.WithLimit(15)
	require.EqualValues(t, 30, tier.Burst(), "a burst that was chosen stays")
	require.Equal(t, 2*time.Second, tier.Expiry())
	require.NoError(t, r.WithBurst(1<<30).Err())
	require.ErrorContains(t, r.WithBurst(1<<53).Err(), "Rule.Burst is")
}

func TestEqualRulesAreOneKey(t *testing.T) {
	made := map[ratelimit.Rule]int{}
	for range 3 {
		for _, r := range everyRule(10) {
			made[r]++
			made[r.WithLimit(11).WithName("a").WithLimit(10).WithName("")]++
			made[r.WithLimit(11)]++
			made[r.WithLimit(0)]++
		}
	}
	require.Len(t, made, 5+5+1) // the five invalid rules have the same error, so they are equal
	require.Equal(t, unsafe.Sizeof(uintptr(0)), unsafe.Sizeof(ratelimit.Rule{}))
}

// sharesCounter reports whether a key has the same counter for both rules.
func sharesCounter(a, b ratelimit.Rule) bool { return a.Layout().ID == b.Layout().ID }

func TestWhichRulesShareACounter(t *testing.T) {
	buckets := ratelimit.BucketOptions{Limit: 10, Per: time.Minute}
	r := ratelimit.Buckets(buckets)
	for _, like := range []func(o *ratelimit.BucketOptions){
		func(o *ratelimit.BucketOptions) { o.Limit = 3 },
		func(o *ratelimit.BucketOptions) { o.Expiry = time.Hour },
	} {
		o := buckets
		like(&o)
		require.True(t, sharesCounter(r, ratelimit.Buckets(o)), "%+v", o)
	}
	for _, unlike := range []func(o *ratelimit.BucketOptions){
		func(o *ratelimit.BucketOptions) { o.Per = 2 * time.Minute },
		func(o *ratelimit.BucketOptions) { o.Interval = time.Second },
		func(o *ratelimit.BucketOptions) { o.Span = 1200 * time.Second },
	} {
		o := buckets
		unlike(&o)
		require.False(t, sharesCounter(r, ratelimit.Buckets(o)), "%+v", o)
	}
	require.True(t, sharesCounter(r, r.WithBlock(ratelimit.Block{After: 2, For: time.Second})))
	require.False(t, sharesCounter(r, r.WithName("other")))
	require.False(t, sharesCounter(r, r.WithName(r.Name())), "a name that was chosen")
	log := ratelimit.SlidingLog(10, time.Minute)
	require.False(t, sharesCounter(r, log))
	require.False(t, sharesCounter(log, log.WithStream()))
	bucket := ratelimit.GCRA(10, time.Minute)
	require.True(t, sharesCounter(bucket, ratelimit.GCRA(3, time.Minute).WithBurst(7)))
}

// TestForgedReceipts checks that a refund compares all fields of a receipt.
func TestForgedReceipts(t *testing.T) {
	for name, r := range everyRule(10) {
		l := newLimiter(t, newStore(t, memstore.Options{}), r)
		good := must(l.Take(t.Context(), "k", 2))
		for _, extreme := range []int64{math.MinInt64, -1, 0, 3, good.Receipt.At - 1, 1 << 53, math.MaxInt64} {
			for i := range 3 {
				bad := good
				*[]*int64{&bad.Receipt.N, &bad.Receipt.At, &bad.Receipt.Generation}[i] = extreme
				if bad.Receipt != good.Receipt {
					require.False(t, must(l.Refund(t.Context(), "k", bad)), "%s: %+v", name, bad.Receipt)
				}
			}
		}
		require.True(t, must(l.Refund(t.Context(), "k", good)), name)
	}
}
