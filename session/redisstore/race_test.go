package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/storage"
)

// TestDestroyedStaysDestroyed lets two servers save, load, renew and destroy a
// session at once. Whatever the order, nothing is left of it.
func TestDestroyedStaysDestroyed(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	one, two := newStore(t, c, patient), newStore(t, server.Client(nil), patient)
	for range 400 {
		v := newVisitor().created(t, one, "user", "ada")
		start := make(chan struct{})
		var wg sync.WaitGroup
		run := func(f func() error, expected error) {
			wg.Go(func() {
				<-start
				if err := f(); err != nil && !errors.Is(err, expected) {
					t.Error(err)
				}
			})
		}
		touching := limits
		touching.Touch = 0
		for k := range 3 {
			name := fmt.Sprint("f", k)
			run(func() error { return one.Commit(t.Context(), v.delta(name, "1")) }, storage.ErrGone)
			run(func() error { return two.Commit(t.Context(), v.delta(name, "2")) }, storage.ErrGone)
		}
		run(func() error { _, err := two.Load(t.Context(), v.locator, v.digest, touching); return err }, storage.ErrNotFound)
		run(func() error { return one.Destroy(t.Context(), v.locator, v.digest) }, nil)
		close(start)
		wg.Wait()
		require.Zero(t, c.Exists(t.Context(), v.key()).Val(), "revived")
		require.ErrorIs(t, two.Commit(t.Context(), v.delta("late", "1")), storage.ErrGone)
		require.Zero(t, c.Exists(t.Context(), v.key()).Val(), "revived")
	}
}

func TestFlushedScriptsAreLoadedAgain(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	v := newVisitor().created(t, s)
	endFlushes := testhost.KeepFlushingScripts(t, c)
	var wg sync.WaitGroup
	for k := range 16 {
		wg.Go(func() {
			for n := range 25 {
				if err := s.Commit(t.Context(), v.delta(fmt.Sprint(k, ".", n), "1")); err != nil {
					t.Error(err)
				}
				if _, err := s.Load(t.Context(), v.locator, v.digest, limits); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	endFlushes()
	rec, err := s.Load(t.Context(), v.locator, v.digest, limits)
	require.NoError(t, err)
	require.Len(t, rec.Fields, 16*25)
}
