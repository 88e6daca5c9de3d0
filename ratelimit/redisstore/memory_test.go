package redisstore

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestDocumentedMemory compares the memory of each rule's counter with the table in docs/redis.md.
func TestDocumentedMemory(t *testing.T) {
	all, err := os.ReadFile(document)
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(all), "## Memory")
	s, c, clock := frozen(t)
	log := ratelimit.SlidingLog(1<<30, time.Hour)
	for _, tt := range []struct {
		name  string
		rule  ratelimit.Rule
		takes int
	}{
		{"FixedWindow", ratelimit.FixedWindow(1<<30, time.Hour), 10},
		{"GCRA", ratelimit.GCRA(1<<20, time.Minute), 10},
		{"Buckets, 12 of them", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 30, Span: time.Minute}), 10},
		{"Buckets, 120 of them", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 30}), 10},
		{"PerSecond to PerDay, and Per", ratelimit.PerDay(1000), 10},
		{"SlidingLog, 10 events", log, 10},
		{"SlidingLog, 1000 events", log, 1000},
		{"SlidingLog as a stream, 10 events", log.WithStream(), 10},
		{"SlidingLog as a stream, 1000 events", log.WithStream(), 1000},
	} {
		for range tt.takes {
			do(t, s, takeOf(tt.rule, "192.0.2.1", 1))
			clock.Advance(time.Millisecond)
		}
		_, row, found := strings.Cut(text, "| "+tt.name+" | ")
		require.True(t, found, tt.name)
		var want int
		_, err = fmt.Sscan(row, &want)
		require.NoError(t, err)
		testhost.CheckMemory(t, c, keyOf(s, "192.0.2.1", tt.rule), want, 0.1)
		do(t, s, opOf(ratelimit.Reset, tt.rule, "192.0.2.1", 0))
	}
}

// TestDerivedBucketsAreSmall checks that a counter whose buckets are derived from its Per takes at most 300 bytes if
// the subject has at most 34 bytes.
func TestDerivedBucketsAreSmall(t *testing.T) {
	s, c, clock := frozen(t)
	const key = "u:0b5a4c1e8d5f4f0e9a556c4b9a1f2d3e"
	for _, r := range []ratelimit.Rule{
		ratelimit.PerSecond(3), ratelimit.PerMinute(5), ratelimit.PerHour(100), ratelimit.PerDay(1000),
		ratelimit.Per(1000, 30*24*time.Hour), ratelimit.Per(7, 10*time.Second), ratelimit.Per(7, 10*time.Millisecond),
	} {
		for range 30 { // longer than the span, so that every bucket is in use
			do(t, s, takeOf(r, key, 1))
			clock.Advance(r.Interval())
		}
		used := c.MemoryUsage(t.Context(), keyOf(s, key, r), 0).Val()
		require.Positive(t, used)
		require.LessOrEqual(t, used, int64(300), "%v", r)
	}
}
