package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/storage"
)

// expires fails unless the key of v expires in about the duration want.
func expires(t *testing.T, c *redis.Client, v visitor, want time.Duration) {
	t.Helper()
	left := must(c.PTTL(t.Context(), v.key()).Result())
	require.LessOrEqual(t, left, want+time.Millisecond)
	require.Greater(t, left, want-time.Minute)
}

func TestKeysExpireWithTheirSessions(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	lim := storage.Limits{Idle: time.Hour, Absolute: 3 * time.Hour, Touch: 10 * time.Minute}
	load := func(v visitor) {
		t.Helper()
		must(s.Load(t.Context(), v.locator, v.digest, lim))
	}
	v := newVisitor()
	d := v.delta("user", "ada")
	d.Create, d.Limits = true, lim
	require.NoError(t, s.Commit(t.Context(), d))
	expires(t, c, v, time.Hour)

	testhost.AgeKey(t, c, older, 9*time.Minute)
	load(v)
	expires(t, c, v, 51*time.Minute) // the load did not count as use yet
	testhost.AgeKey(t, c, older, 2*time.Minute)
	load(v)
	expires(t, c, v, time.Hour)

	testhost.AgeKey(t, c, older, 50*time.Minute)
	d.Create = false
	require.NoError(t, s.Commit(t.Context(), d))
	expires(t, c, v, time.Hour)

	for range 2 { // afterwards, 19 of the 180 minutes are left
		testhost.AgeKey(t, c, older, 50*time.Minute)
		load(v)
	}
	expires(t, c, v, 19*time.Minute)
	require.NoError(t, s.Commit(t.Context(), d))
	expires(t, c, v, 19*time.Minute)
	lim.Absolute = 2 * time.Hour // a shorter limit takes effect at once
	require.ErrorIs(t, second(s.Load(t.Context(), v.locator, v.digest, lim)), storage.ErrNotFound)
}

func TestLostExpiryIsRepaired(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	for name, use := range map[string]func(v visitor) error{
		"commit": func(v visitor) error { return s.Commit(t.Context(), v.delta()) },
		"touch": func(v visitor) error {
			_, err := s.Load(t.Context(), v.locator, v.digest, storage.Limits{Idle: time.Hour, Absolute: time.Hour})
			return err
		},
	} {
		v := newVisitor().created(t, s, "user", "ada")
		require.True(t, c.Persist(t.Context(), v.key()).Val(), name)
		require.NoError(t, use(v), name)
		expires(t, c, v, time.Hour)
	}
}

// TestStoredTimesDecide checks that a session ends even if its key has lost its expiry.
func TestStoredTimesDecide(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	over := func() visitor {
		v := newVisitor().created(t, s, "user", "ada")
		require.True(t, c.Persist(t.Context(), v.key()).Val())
		require.NoError(t, c.HIncrBy(t.Context(), v.key(), "touched", -time.Hour.Microseconds()).Err())
		return v
	}
	v := over()
	_, err := s.Load(t.Context(), v.locator, v.digest, limits)
	require.ErrorIs(t, err, storage.ErrNotFound)
	require.Zero(t, c.Exists(t.Context(), v.key()).Val())

	v = over()
	require.ErrorIs(t, s.Commit(t.Context(), v.delta("user", "eve")), storage.ErrGone)
	require.Zero(t, c.Exists(t.Context(), v.key()).Val())

	v = over().created(t, s, "cart", "3") // the locator can be used again
	rec := must(s.Load(t.Context(), v.locator, v.digest, limits))
	require.Equal(t, map[string][]byte{"cart": []byte("3")}, rec.Fields)
}
