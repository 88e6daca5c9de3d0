package torture_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

const per = 300 * time.Millisecond

// ruleSets has rules of every algorithm. An episode lasts for several intervals of these rules, except for the longest.
var ruleSets = map[string][]ratelimit.Rule{
	"buckets":  {ratelimit.Buckets(ratelimit.BucketOptions{Limit: 30, Per: per, Interval: 100 * time.Millisecond})},
	"window":   {ratelimit.FixedWindow(30, per)},
	"log":      {ratelimit.SlidingLog(30, per)},
	"stream":   {ratelimit.SlidingLog(30, per).WithStream()},
	"gcra":     {ratelimit.GCRA(30, per).WithBurst(15)},
	"throttle": {ratelimit.Throttle(50 * time.Millisecond)},
	"blocked":  {ratelimit.SlidingLog(30, per).WithBlock(ratelimit.Block{After: 3, For: 100 * time.Millisecond})},
	"group":    {ratelimit.FixedWindow(20, per), ratelimit.SlidingLog(50, 2*per), ratelimit.GCRA(100, time.Second)},
	"hour":     {ratelimit.PerHour(100)},
	"minute":   {ratelimit.FixedWindow(200, time.Minute)},
}

// meters are rules that only count.
var meters = map[string][]ratelimit.Rule{
	"meter of buckets": {ratelimit.Buckets(ratelimit.BucketOptions{Interval: 100 * time.Millisecond, Span: meterSpan})},
	"meter of a log":   {ratelimit.SlidingLog(1, meterSpan).WithoutLimit()},
	"meter of stream":  {ratelimit.SlidingLog(1, meterSpan).WithStream().WithoutLimit()},
}

const meterSpan = 5 * time.Second

var keys atomic.Int64 // each episode has new keys

// subjects returns a function that returns new subjects: for each shard, one for each set of rules and each meter. shards
// holds the text that places a key in a shard.
func subjects(t *testing.T, store ratelimit.Store, exact bool, shards ...string) func() []*subject {
	limiters, sets := make(map[string]*ratelimit.Limiter), maps.Clone(ruleSets)
	maps.Copy(sets, meters)
	for name, rules := range sets {
		var err error
		limiters[name], err = ratelimit.NewLimiter(store, rules...)
		require.NoError(t, err)
	}
	return func() (all []*subject) {
		number := keys.Add(1)
		for i, shard := range shards {
			for _, name := range slices.Sorted(maps.Keys(limiters)) {
				all = append(all, &subject{
					Limiter: limiters[name], rules: sets[name], key: fmt.Sprintf("%s:%d:%s", name, number, shard), shard: i,
					exact: exact && len(ruleSets[name]) == 1 && name != "blocked",
				})
			}
		}
		return all
	}
}
