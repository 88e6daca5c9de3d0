package layer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestNewStacksTheLayers(t *testing.T) {
	memory, _ := newMemory(t)
	s, err := New(memory, Options{
		Lists: &ListsOptions{}, Shadow: &ShadowOptions{}, DenyCache: &DenyCacheOptions{}, Failover: &FailoverOptions{}, Prepaid: &PrepaidOptions{},
	})
	require.NoError(t, err)
	lists := s.outermost.(*listLayer)
	shadow := lists.inner.(*shadowLayer)
	cache := shadow.inner.(*denyCache)
	failover := cache.inner.(*failover)
	allotment := failover.inner.(*prepaidLayer)
	require.Equal(t, ratelimit.Store(memory), allotment.inner)

	res, err := s.DoOne(t.Context(), take(gcra(5), "k", 1))
	require.NoError(t, err)
	require.True(t, res.Allowed)
	require.Zero(t, s.Stats())
	require.NoError(t, s.SetLists(List{}, List{Keys: []string{"k"}}))
	results, err := s.Do(t.Context(), []ratelimit.Op{take(gcra(5), "k", 1)})
	require.NoError(t, err)
	require.Equal(t, ratelimit.FromDenyList, results[0].Source)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

func TestNewWithoutLayers(t *testing.T) {
	memory, _ := newMemory(t)
	s, err := New(memory, Options{})
	require.NoError(t, err)
	require.Equal(t, ratelimit.Store(memory), s.outermost)
	require.ErrorContains(t, s.SetLists(List{}, List{}), "no lists")
	require.Zero(t, s.Stats())
	require.NoError(t, s.Close())
}

func TestNewErrors(t *testing.T) {
	_, err := New(nil, Options{})
	require.ErrorContains(t, err, "store is nil")
	_, err = New((*Store)(nil), Options{})
	require.ErrorContains(t, err, "store is nil")
	memory, _ := newMemory(t)
	_, err = New(memory, Options{Lists: &ListsOptions{Deny: List{Keys: []string{""}}}, Prepaid: &PrepaidOptions{}})
	require.ErrorContains(t, err, "ListsOptions.Deny")
	_, err = New(memory, Options{Failover: &FailoverOptions{Timeout: -1}})
	require.ErrorContains(t, err, "FailoverOptions.Timeout")
}
