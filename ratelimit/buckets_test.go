package ratelimit

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucketsDefaults(t *testing.T) {
	r := Buckets(BucketOptions{})
	require.Equal(t, 5*time.Second, r.Interval())
	require.Equal(t, 600*time.Second, r.Span())
	require.Equal(t, 600*time.Second, r.Per())
	require.Equal(t, 1200*time.Second, r.Expiry())
	require.Zero(t, r.Limit())
	require.Equal(t, "buckets", r.Algorithm())
	require.Equal(t, "buckets(no limit)", r.String())
	require.Equal(t, "no rule", Rule{}.String())
}

func TestBucketsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    BucketOptions
		want string
	}{
		"span not divided":    {BucketOptions{Interval: 7 * time.Second}, "BucketOptions.Span is 10m0s, want a multiple of Interval 7s"},
		"two buckets":         {BucketOptions{Interval: 300 * time.Second}, "BucketOptions.Span is 10m0s, want 3 to"},
		"too many buckets":    {BucketOptions{Interval: time.Millisecond}, "BucketOptions.Span is 10m0s, want 3 to 65536"},
		"interval above span": {BucketOptions{Interval: 1200 * time.Second}, "BucketOptions.Span is 10m0s"},
		"per above span":      {BucketOptions{Per: 605 * time.Second, Interval: 5 * time.Second, Span: 600 * time.Second}, "BucketOptions.Per is 10m5s, want at most Span 10m0s"},
		"per below interval":  {BucketOptions{Per: time.Second, Interval: 5 * time.Second}, "BucketOptions.Per is 1s, want at least Interval 5s"},
		"expiry below span":   {BucketOptions{Expiry: time.Minute}, "BucketOptions.Expiry is 1m0s, want at least Span 10m0s"},
		"negative interval":   {BucketOptions{Interval: -1}, "BucketOptions.Interval is -1ns"},
		"negative span":       {BucketOptions{Span: -time.Second}, "BucketOptions.Span is -1s"},
		"nanoseconds":         {BucketOptions{Per: 6*time.Second + 1}, "BucketOptions.Per is 6.000000001s, want whole microseconds"},
		"nanosecond interval": {BucketOptions{Interval: 500}, "BucketOptions.Interval is 500ns, want whole microseconds"},
		"endless span":        {BucketOptions{Span: math.MaxInt64}, "BucketOptions.Span is"},
		"endless expiry":      {BucketOptions{Expiry: math.MaxInt64}, "BucketOptions.Expiry is"},
		"negative limit":      {BucketOptions{Limit: -1}, "BucketOptions.Limit is -1"},
		"limit above 2^53":    {BucketOptions{Limit: 1<<53 + 1}, "BucketOptions.Limit is 9007199254740993"},
		"a nanosecond":        {BucketOptions{Per: 1}, "BucketOptions.Per is 1ns, want whole microseconds"},
		"negative per":        {BucketOptions{Per: -time.Second}, "BucketOptions.Per is -1s"},
		"endless per":         {BucketOptions{Per: math.MaxInt64 / 1000 * 1000}, "BucketOptions.Per is"},
		"endless both":        {BucketOptions{Per: time.Second, Span: math.MaxInt64 / 1000 * 1000}, "BucketOptions.Span is"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Buckets(c.o)
			require.ErrorContains(t, r.Err(), c.want)
			require.Empty(t, r.Algorithm())
		})
	}
}

func TestKindString(t *testing.T) {
	for kind, want := range map[Kind]string{
		0: "Kind(0)", Take: "take", Peek: "peek", Add: "add", Count: "count", Refund: "refund", Reset: "reset", 7: "Kind(7)",
	} {
		require.Equal(t, want, kind.String())
	}
}
