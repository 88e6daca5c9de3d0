package redisstore

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestOptionErrors(t *testing.T) {
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	_, err := New(nil, Options{})
	require.ErrorContains(t, err, "no client")
	_, err = New(c, Options{Timeout: -time.Second})
	require.ErrorContains(t, err, "Options.Timeout is -1s")
	_, err = New(c, Options{Timeout: math.MaxInt64})
	require.ErrorContains(t, err, "Options.Timeout is 2562047h47m16.854775807s")
	for _, prefix := range []string{"a{b", "a}b"} {
		_, err = New(c, Options{Prefix: prefix})
		require.ErrorContains(t, err, "Options.Prefix is "+fmt.Sprintf("%q", prefix))
	}
}

func TestKeys(t *testing.T) {
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	s := newStore(t, c, Options{})
	r := ratelimit.Buckets(perMinute(10))
	require.Equal(t, "ratelimit:{login:192.0.2.1}:buckets:60s/5s/10m0s", keyOf(s, "login:192.0.2.1", r))
	require.Equal(t, "app/{k}:buckets:burst:1s/1s/3s", keyOf(newStore(t, c, Options{Prefix: "app/"}), "k", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 10, Per: time.Second, Interval: time.Second, Span: 3 * time.Second}).WithName("burst")))

	// The limit and the expiry can change while keys are in use.
	require.Equal(t, keyOf(s, "k", r), keyOf(s, "k", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 3, Per: time.Minute, Interval: 5 * time.Second, Span: 10 * time.Minute, Expiry: time.Hour})))
	require.Equal(t, "ratelimit:{k}:buckets:60s", keyOf(s, "k", ratelimit.PerMinute(3)))
	require.Equal(t, "ratelimit:{k}:concurrent:1m0s", keyOf(s, "k", ratelimit.Concurrent(3)))
	require.Equal(t, "ratelimit:{k}:concurrent:slow:1h0m0s", keyOf(s, "k", ratelimit.Concurrent(3).WithName("slow").WithLife(time.Hour)))
	seen := map[string]string{}
	for _, o := range []ratelimit.BucketOptions{
		perMinute(1), {}, {Per: 5 * time.Second}, {Interval: time.Second}, {Span: 700 * time.Second, Per: 600 * time.Second},
	} {
		for _, r := range []ratelimit.Rule{ratelimit.Buckets(o), ratelimit.Buckets(o).WithName("a")} {
			for _, subject := range odd {
				key := keyOf(s, subject, r)
				require.Empty(t, seen[key])
				seen[key] = subject
			}
		}
	}
}

// odd holds subjects with characters that have a meaning in hash tags, escapes or lines.
var odd = []string{"k", "}", "}x", "{", "{}", "{}x", "a}b", "a{b}c", "a%7Db", "%", "%25", "a\r\nb", "\x00\xff"}

// TestSubjectIsOneSlot runs groups on a Redis in cluster mode, which refuses keys of different slots in a call.
func TestSubjectIsOneSlot(t *testing.T) {
	t.Parallel()
	_, plain, cluster := testhost.StartNode(t)

	for _, c := range []redis.UniversalClient{plain, cluster} {
		s := newStore(t, c, patient)
		short := ratelimit.Per(2, 10*time.Second).WithName("short")
		long := ratelimit.Buckets(perMinute(4))
		for _, subject := range odd {
			res := do(t, s, opOf(ratelimit.Take, short, subject, 1), opOf(ratelimit.Take, long, subject, 1))
			require.True(t, res[0].Allowed && res[1].Allowed, "%q", subject)
		}
	}
}

// TestStoresShareCounters uses two stores with a client each, like two processes. A third store has another prefix.
func TestStoresShareCounters(t *testing.T) {
	server := testhost.StartRedis(t)
	a, b := newStore(t, server.Client(nil), patient), newStore(t, server.Client(nil), patient)
	elsewhere := newStore(t, server.Client(nil), Options{Prefix: "other:", Timeout: patient.Timeout})
	r := ratelimit.Buckets(perMinute(3))
	first := do(t, a, takeOf(r, "k", 2))[0]
	denied := do(t, b, takeOf(r, "k", 2))[0]
	require.False(t, denied.Allowed)
	require.EqualValues(t, 1, denied.Remaining)
	require.Greater(t, denied.RetryAfter, 55*time.Second)
	require.True(t, do(t, elsewhere, takeOf(r, "k", 2))[0].Allowed)
	require.True(t, do(t, b, refundOf(r, "k", first.Receipt))[0].Allowed)
	require.True(t, do(t, a, takeOf(r, "k", 3))[0].Allowed)
}
