package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

func TestSessionHasALargestSize(t *testing.T) {
	const each = 64 + 2 + 34
	s := newSite(t, session.Options{MaxBytes: 5 * each})
	value := strings.Repeat("x", 32)
	cookie := cookieOf(t, s.do(t, "", func(_ context.Context, v session.Session) {
		for i := range 3 {
			require.NoError(t, v.Set(fmt.Sprint("f", i), value))
		}
	}))
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		for range 3 { // replacing a value does not count it twice
			require.NoError(t, v.Set("f3", value))
			require.NoError(t, v.Set("f4", value))
		}
		err := v.Set("f5", "")
		require.ErrorIs(t, err, session.ErrTooLarge)
		require.ErrorContains(t, err, `field "f5"`)
		require.ErrorContains(t, err, "568 bytes, and Options.MaxBytes is 500")
		require.ErrorIs(t, visits.Add(ctx, 1), session.ErrTooLarge)
		require.Nil(t, must(v.Get("f5")), "a refused write has changed nothing")
		require.NoError(t, v.Set("f0", ""), "shrinking is allowed")
		require.NoError(t, v.Delete("f1"))
		require.NoError(t, v.Delete("f1"))
		require.NoError(t, v.Set("f5", value), "a deleted field makes room")
		require.ErrorIs(t, v.Set("f6", value), session.ErrTooLarge)
		_, _, err = session.NewFlash[string]("f2").Take(ctx)
		require.NoError(t, err)
		require.NoError(t, v.Set("f6", value))
		require.NoError(t, v.Destroy())
		for i := range 5 {
			require.NoError(t, v.Set(fmt.Sprint("g", i), value))
		}
		require.ErrorIs(t, v.Set("g5", value), session.ErrTooLarge)
	})
}

func TestUpdatesCountTowardsTheSize(t *testing.T) {
	s := newSite(t, session.Options{MaxBytes: 1000})
	cookie := s.login(t, "ada")
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		err := device.Update(ctx, func(string) (string, error) { return strings.Repeat("x", 1000), nil })
		require.ErrorIs(t, err, session.ErrTooLarge)
		require.ErrorContains(t, err, `field "device"`)
		require.NoError(t, device.Update(ctx, func(string) (string, error) { return strings.Repeat("x", 700), nil }))
		require.ErrorIs(t, v.Set("more", strings.Repeat("x", 100)), session.ErrTooLarge)
	})
}

// TestUpdateOfAReloadedFieldCountsTowardsTheSize changes the field with another request, so that the update reads the
// field again. The size is still computed from the value that was loaded first.
func TestUpdateOfAReloadedFieldCountsTowardsTheSize(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, tt := range map[string]struct {
		other, loaded, changed, updated int
		want                            error
	}{
		"another request shrinks it": {0, 700, 10, 700, nil},
		"another request grows it":   {500, 0, 200, 400, session.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{MaxBytes: 1000})
			set := func(n int) func(context.Context, session.Session) {
				return func(ctx context.Context, _ session.Session) { require.NoError(t, device.Set(ctx, text(n))) }
			}
			cookie := s.login(t, text(tt.other))
			s.do(t, cookie, set(tt.loaded))
			s.do(t, cookie, func(ctx context.Context, _ session.Session) {
				must(device.Get(ctx))
				s.do(t, cookie, set(tt.changed))
				require.ErrorIs(t, device.Update(ctx, func(old string) (string, error) {
					if len(old) == tt.loaded {
						return "conflict", nil
					}
					return text(tt.updated), nil
				}), tt.want)
			})
		})
	}
}

// TestFiveMegabytesAreRefusedAtOnce checks that large values, names and users are not sent to the store.
func TestFiveMegabytesAreRefusedAtOnce(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	large := strings.Repeat("x", 5<<20)
	before := s.store.calls()
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		require.ErrorIs(t, v.Set("big", large), session.ErrTooLarge)
		require.ErrorIs(t, v.Delete(large), session.ErrTooLarge)
		require.ErrorIs(t, v.Bind(strings.Repeat("a", 1025)), session.ErrTooLarge)
		require.Empty(t, must(v.User()))
	})
	require.Equal(t, before[1], s.store.calls()[1])
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		require.NoError(t, v.Set("f", strings.Repeat("x", 255<<10)))
		require.NoError(t, v.Bind(strings.Repeat("a", 1024)))
	})
}

// TestTooLargeSessionMayShrink lowers MaxBytes below the size of an existing session. The session must remain usable.
func TestTooLargeSessionMayShrink(t *testing.T) {
	store := newMemory(t, memstore.Options{})
	cookie := cookieOf(t, newSiteOn(t, store, session.Options{}).do(t, "", func(_ context.Context, v session.Session) {
		require.NoError(t, v.Set("big", strings.Repeat("x", 5000)))
	}))
	s := newSiteOn(t, store, session.Options{MaxBytes: 1000})
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		require.ErrorIs(t, v.Set("a", 1), session.ErrTooLarge)
		require.NoError(t, v.Set("big", strings.Repeat("y", 5000)), "as large as before")
		require.NoError(t, v.Set("big", strings.Repeat("x", 4000)))
		require.NoError(t, v.Delete("big"))
		require.NoError(t, v.Set("a", 1))
	})
}
