package testhost

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMiniredisAdvance(t *testing.T) {
	s := StartMiniredis(t)
	c := s.Client()
	require.Equal(t, s.Now().UnixMicro(), c.Time(t.Context()).Val().UnixMicro())
	require.NoError(t, c.Set(t.Context(), "k", "v", time.Second).Err())
	for _, d := range []time.Duration{time.Hour, -2 * time.Hour} {
		before := s.Now()
		s.Advance(d)
		require.Equal(t, before.Add(d).UnixMicro(), c.Time(t.Context()).Val().UnixMicro())
	}
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())
	s.FastForward(time.Second)
	require.Zero(t, c.Exists(t.Context(), "k").Val())
}
