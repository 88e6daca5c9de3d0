package params

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

func TestEveryLoopBindsTheRightValues(t *testing.T) {
	for _, c := range cases {
		for _, one := range c.contenders {
			require.NoError(t, one.loop()(10), "%s %s", c.name, one.name)
		}
	}
}

func TestAWrongValueIsNoticed(t *testing.T) {
	wrong := queryLoop(func() func(*http.Request) (query, error) {
		return func(*http.Request) (query, error) { return query{Q: "lazy"}, nil }
	})
	require.ErrorIs(t, wrong()(1), harness.ErrWrong)
	empty := jsonLoop(func() func(*http.Request) (profile, error) {
		return func(*http.Request) (profile, error) { return profile{}, nil }
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
