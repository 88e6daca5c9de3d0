package params

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestEveryLoopBindsTheRightValues(t *testing.T) {
	for _, c := range cases {
		for _, one := range c.contenders {
			require.NoError(t, one.loop()(10), "%s %s", c.name, one.name)
		}
	}
}

func TestWrongValueIsNoticed(t *testing.T) {
	wrong := queryLoop(func() func(*reqctx.Host) (query, error) {
		return func(*reqctx.Host) (query, error) { return query{Q: "lazy"}, nil }
	})
	require.ErrorIs(t, wrong()(1), harness.ErrWrong)
	empty := jsonLoop(func() func(*reqctx.Host) (profile, error) {
		return func(*reqctx.Host) (profile, error) { return profile{}, nil }
	})
	require.ErrorIs(t, empty()(1), harness.ErrWrong)
}

// What is promised of ours; times are for a quiet machine.
func TestOursAllocatesLeast(t *testing.T) {
	for _, c := range cases[:1] {
		allocs := map[string]float64{}
		for _, one := range c.contenders {
			loop := one.loop()
			allocs[one.name] = testing.AllocsPerRun(100, func() { require.NoError(t, loop(1)) })
		}
		for name, theirs := range allocs {
			require.LessOrEqual(t, allocs["lazyreq"], theirs, "%s: %v", name, allocs)
		}
	}
}
