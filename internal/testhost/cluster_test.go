package testhost

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := StartCluster(t)
	t.Logf("up after %v", time.Since(began))
	client := c.Client(nil)
	for i := range 30 {
		require.NoError(t, client.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err())
	}

	slot := c.Slot("{a}")
	require.Equal(t, slot, c.Slot("{a}b"))
	require.NotEqual(t, slot, c.Slot("b"))
	for i := range 20 {
		require.NoError(t, client.Set(t.Context(), fmt.Sprintf("{a}%d", i), i, 0).Err())
	}
	before := c.Masters(slot)
	require.Len(t, before, 3)
	c.MoveSlot(slot, before[1])
	require.Equal(t, before[1], c.Masters(slot)[0])
	size := before[1].Client(nil).ClusterCountKeysInSlot(t.Context(), slot).Val()
	require.EqualValues(t, 20, size)
	for i := range 20 {
		require.Equal(t, fmt.Sprint(i), client.Get(t.Context(), fmt.Sprintf("{a}%d", i)).Val())
	}

	c.WaitReplicated(slot)
	killed := time.Now()
	heir := c.KillMaster(slot)
	t.Logf("taken over after %v", time.Since(killed))
	require.NotEqual(t, before[1], heir)
	require.Len(t, c.Masters(slot), 3)
	require.Equal(t, heir, c.Masters(slot)[0])
	require.Equal(t, "7", c.Client(nil).Get(t.Context(), "{a}7").Val())

	c.Stop()
	require.Error(t, c.Client(nil).Get(t.Context(), "k1").Err())
}

func TestSlotMoveInSteps(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	client := c.Client(nil)
	slot := c.Slot("{a}")
	for i := range 4 {
		require.NoError(t, client.Set(t.Context(), fmt.Sprintf("{a}%d", i), i, 0).Err())
	}
	from, to := c.Masters(slot)[0], c.Masters(slot)[1]
	old := from.Client(nil)
	m := c.BeginMove(slot, to)
	require.Equal(t, 3, m.MoveKeys(3))
	left := old.ClusterGetKeysInSlot(t.Context(), slot, 10).Val()
	require.Len(t, left, 1)
	require.NoError(t, old.Get(t.Context(), left[0]).Err(), "served where it is")
	require.True(t, redis.HasErrorPrefix(old.Get(t.Context(), "{a}new").Err(), "ASK"))
	var moved string
	for i := range 4 {
		if k := fmt.Sprintf("{a}%d", i); k != left[0] {
			moved = k
		}
	}
	require.True(t, redis.HasErrorPrefix(old.Get(t.Context(), moved).Err(), "ASK"))
	require.True(t, redis.HasErrorPrefix(old.MGet(t.Context(), moved, left[0]).Err(), "TRYAGAIN"))
	m.End()
	require.True(t, redis.HasErrorPrefix(old.Get(t.Context(), left[0]).Err(), "MOVED"))
	require.Equal(t, []any{"0", "1", "2", "3"}, client.MGet(t.Context(), "{a}0", "{a}1", "{a}2", "{a}3").Val())
}
