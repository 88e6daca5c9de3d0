package testhost

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSentinel(t *testing.T) {
	for name, fail := range map[string]func(*Sentinel){
		"in good order": (*Sentinel).Failover,
		"by a crash":    (*Sentinel).KillMaster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			s := StartSentinel(t)
			t.Logf("up after %v", time.Since(began))
			c := s.Client(nil)
			require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
			s.WaitReplicated()
			began = time.Now()
			fail(s)
			t.Logf("taken over after %v", time.Since(began))
			require.Equal(t, "v", s.Client(nil).Get(t.Context(), "k").Val())
			require.NoError(t, s.Replica.Client(nil).Set(t.Context(), "k", "w", 0).Err(), "a master")
			require.Eventually(t, func() bool { // the old client finds the new master
				return c.Get(t.Context(), "k").Val() == "w"
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}

// TestStalledMasterIsNotReplaced pauses the master for longer than a failover takes.
func TestStalledMasterIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t)
	resume := s.Master.Pause()
	<-time.After(1500 * time.Millisecond)
	resume()
	require.NoError(t, s.Client(nil).Set(t.Context(), "k", "v", 0).Err())
	s.WaitReplicated()
	require.False(t, s.Replica.role().master)
}

// In TestLoseWrites, a replica that has missed writes takes over.
func TestLoseWrites(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, Durable...)
	c := s.Client(nil)
	require.NoError(t, c.Set(t.Context(), "early", "v", 0).Err())
	s.LoseWrites(func() { require.NoError(t, c.Set(t.Context(), "late", "v", 0).Err()) })
	require.EqualValues(t, 1, s.Client(nil).Exists(t.Context(), "early", "late").Val())
	require.Equal(t, "v", s.Client(nil).Get(t.Context(), "early").Val())
}
