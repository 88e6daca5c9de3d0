package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// FuzzStoredCounter puts anything into the key of a counter, as each type of value that Redis has
// for one. A take is then a sound decision or fails with ErrKeyType.
func FuzzStoredCounter(f *testing.F) {
	server := testhost.StartMiniredis(f)
	s := newStore(f, server.Client(), Options{Timeout: 10 * time.Second})
	rules := []ratelimit.Rule{
		ratelimit.PerMinute(5), ratelimit.FixedWindow(5, time.Minute), ratelimit.GCRA(5, time.Minute),
		ratelimit.SlidingLog(5, time.Minute), ratelimit.SlidingLog(5, time.Minute).WithStream(), ratelimit.Throttle(time.Minute),
	}
	for rule := range rules {
		f.Add(rule, 0, "5 3", "3", 1.0)
		f.Add(rule, 1, "ends", "1000000060000000", 1.0)
		f.Add(rule, 2, "1000000000000000 1", "1", 1e15)
		f.Add(rule, 3, "5-3", "3", 1.0)
	}
	f.Fuzz(func(t *testing.T, rule, kind int, a, b string, score float64) {
		if rule < 0 || rule >= len(rules) {
			return
		}
		r := rules[rule]
		key := keyOf(s, "k", r)
		server.Del(key)
		var err error
		switch kind {
		case 0:
			err = server.Set(key, a)
		case 1:
			server.HSet(key, a, b, "n", "2")
		case 2:
			_, err = server.ZAdd(key, score, a)
		case 3:
			_, err = server.XAdd(key, a, []string{"n", b})
		default:
			_, err = server.SAdd(key, a, b)
		}
		if err != nil {
			return
		}
		for _, kind := range []ratelimit.Kind{ratelimit.Peek, ratelimit.Take, ratelimit.Add, ratelimit.Count, ratelimit.Reset} {
			n := int64(0)
			if kind != ratelimit.Count && kind != ratelimit.Reset {
				n = 1
			}
			res, err := s.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", N: n, Kind: kind})
			if err != nil {
				require.True(t, errors.Is(err, ErrKeyType) || errors.Is(err, ratelimit.ErrOverflow) || errors.Is(err, ratelimit.ErrNoCount), err)
				continue
			}
			require.LessOrEqual(t, res.Remaining, r.Limit(), kind)
			require.GreaterOrEqual(t, min(res.Remaining, res.Count, int64(res.RetryAfter)), int64(0), "%v: %+v", kind, res)
		}
	})
}
