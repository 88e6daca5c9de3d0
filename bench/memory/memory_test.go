package memory

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

func TestRoundsOfAll(t *testing.T) {
	for _, c := range contenders {
		for _, l := range []load{{"known", 512, false, 2}, {"fresh", 512, true, 1}} {
			in := &instance{contender: c, load: l, length: 5 * time.Millisecond}
			values, err := in.Round(t.Context())
			require.NoError(t, err, "%s, %s", c.name, l.name)
			require.Positive(t, values["time per decision"])
			require.Len(t, values, len(metrics))
		}
	}
}

// TestWrongLimiters checks that limiters which admit too many, too few or nothing are noticed.
func TestWrongLimiters(t *testing.T) {
	yes := func(string) (bool, error) { return true, nil }
	no := func(string) (bool, error) { return false, nil }
	fail := func(string) (bool, error) { return false, errors.New("boom") }
	for _, tt := range []struct {
		want         string
		wide, narrow func(string) (bool, error)
	}{
		{"admitted 200, allowed were 100", yes, yes},
		{"admitted 0, allowed were 100", yes, no},
		{"a first take is denied", no, no},
		{"a first take fails: boom", fail, no},
	} {
		in := &instance{load: loads(1)[0], length: time.Millisecond, contender: contender{"fake", func(q quota, _ int) (limiter, error) {
			if q == narrow {
				return limiter{tt.narrow, func() {}}, nil
			}
			return limiter{tt.wide, func() {}}, nil
		}}}
		_, err := in.Round(t.Context())
		require.ErrorIs(t, err, harness.ErrWrong)
		require.ErrorContains(t, err, tt.want)
	}
}
