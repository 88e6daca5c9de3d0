package memstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
	"github.com/lazyreq/lazyreq/session/storetest"
)

func TestMemoryConformsToStore(t *testing.T) {
	storetest.Run(t, storetest.Host{
		Open:    func(t *testing.T) session.Store { return newMemory(t, memstore.Options{}) },
		Advance: func(_ *testing.T, d time.Duration) { pass(d) }, // the bubble's clock
		Within:  synctest.Test,
	})
}

func newMemory(t testing.TB, o memstore.Options) *memstore.Store {
	t.Helper()
	m, err := memstore.New(o)
	require.NoError(t, err)
	return m
}

var limits = storage.Limits{Idle: time.Hour, Absolute: 24 * time.Hour, Touch: time.Minute}

func locator(n int) (l storage.Locator) {
	binary.BigEndian.PutUint64(l[:], uint64(n))
	return l
}

func put(m session.Store, n int, value string) error {
	return m.Commit(context.Background(), storage.Delta{
		Create: true, Locator: locator(n), Digest: storage.Digest{1}, Limits: limits,
		Changes: map[string]storage.Change{"v": {Op: storage.OpSet, Value: []byte(value)}},
	})
}

func has(t *testing.T, m session.Store, n int) bool {
	t.Helper()
	_, err := m.Load(t.Context(), locator(n), storage.Digest{1}, limits)
	if err != nil {
		require.ErrorIs(t, err, storage.ErrNotFound)
	}
	return err == nil
}

func TestMemoryKeepsTheMostRecentlyUsed(t *testing.T) {
	m := newMemory(t, memstore.Options{MaxKeys: 3})
	for n := 1; n <= 3; n++ {
		require.NoError(t, put(m, n, ""))
	}
	require.True(t, has(t, m, 1)) // a load counts as use
	require.NoError(t, m.Commit(t.Context(), storage.Delta{Locator: locator(2), Digest: storage.Digest{1}, Limits: limits}))
	require.NoError(t, put(m, 4, ""))
	require.Equal(t, 3, m.Len())
	require.False(t, has(t, m, 3), "the least recently used session should have been evicted")
	require.True(t, has(t, m, 1) && has(t, m, 2) && has(t, m, 4))
}

func TestMemoryIgnoresUseWithAWrongSecret(t *testing.T) {
	m := newMemory(t, memstore.Options{MaxKeys: 2})
	require.NoError(t, put(m, 1, ""))
	require.NoError(t, put(m, 2, ""))
	_, err := m.Load(t.Context(), locator(1), storage.Digest{2}, limits)
	require.ErrorIs(t, err, storage.ErrNotFound)
	require.NoError(t, put(m, 3, ""))
	require.False(t, has(t, m, 1))
}

func TestMemoryBoundsItsBytes(t *testing.T) {
	const room = 16 << 10
	m := newMemory(t, memstore.Options{MaxBytes: room})
	for n := range 100 {
		require.NoError(t, put(m, n, strings.Repeat("x", 1000)))
		require.LessOrEqual(t, m.Len()*(1000+1+512+128), room)
	}
	require.Equal(t, room/(1000+1+512+128), m.Len())

	grow := storage.Delta{Locator: locator(99), Digest: storage.Digest{1}, Limits: limits}
	grow.Changes = map[string]storage.Change{"v": {Op: storage.OpSet, Value: make([]byte, room-1000)}}
	require.NoError(t, m.Commit(t.Context(), grow))
	require.Equal(t, 1, m.Len(), "a session that grows evicts others")

	grow.Changes = map[string]storage.Change{"w": {Op: storage.OpSet, Value: make([]byte, 1000)}}
	require.ErrorIs(t, m.Commit(t.Context(), grow), storage.ErrTooLarge)
	require.ErrorIs(t, put(m, 200, strings.Repeat("x", room)), storage.ErrTooLarge)
	require.True(t, has(t, m, 99), "a refused save evicts nothing")

	require.NoError(t, m.Destroy(t.Context(), locator(99), storage.Digest{1}))
	for n := range 9 {
		require.NoError(t, put(m, 300+n, strings.Repeat("x", 1000)))
	}
	require.Equal(t, 9, m.Len(), "what is destroyed gives its room back")
}

func TestMemoryDropsTheExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, memstore.Options{})
		for n := range 10 {
			require.NoError(t, put(m, n, ""))
		}
		pass(limits.Idle)
		require.False(t, has(t, m, 5))
		require.Equal(t, 9, m.Len(), "asking for an expired session drops it")
		for n := range 5 {
			require.NoError(t, put(m, 100+n, ""))
			require.Equal(t, max(8-n, 5), m.Len(), "each save drops up to two expired ones")
		}
	})
}

func TestMemoryDropsTheUsersOfEvictedSessions(t *testing.T) {
	m := newMemory(t, memstore.Options{MaxKeys: 2})
	for n := range 5 {
		d := storage.Delta{Create: true, Locator: locator(n), Digest: storage.Digest{1}, Limits: limits, Bind: fmt.Sprint("user", n)}
		require.NoError(t, m.Commit(t.Context(), d))
	}
	for n := range 5 {
		entries, err := m.List(t.Context(), fmt.Sprint("user", n), limits)
		require.NoError(t, err)
		require.Len(t, entries, max(0, min(1, n-2)))
	}
	users := newMemory(t, memstore.Options{MaxBytes: 2 * (512 + 256 + 1000)})
	for n := range 5 {
		d := storage.Delta{Create: true, Locator: locator(n), Digest: storage.Digest{1}, Limits: limits, Bind: strings.Repeat(fmt.Sprint(n), 1000)}
		require.NoError(t, users.Commit(t.Context(), d))
	}
	require.Equal(t, 2, users.Len(), "names of users take memory")
}

func TestMemoryOptionsAreChecked(t *testing.T) {
	_, err := memstore.New(memstore.Options{MaxKeys: -1})
	require.ErrorContains(t, err, "Options.MaxKeys")
	_, err = memstore.New(memstore.Options{MaxBytes: 100})
	require.ErrorContains(t, err, "Options.MaxBytes")
}

// pass moves the clock of a synctest bubble by d.
func pass(d time.Duration) { <-time.After(d) }
