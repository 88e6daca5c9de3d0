package redisstore_test

import (
	"bytes"
	"context"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// loggedIn creates v's session, bound to user.
func (v visitor) loggedIn(t testing.TB, s session.Store, user string, lim storage.Limits) visitor {
	t.Helper()
	d := v.delta("device", "phone")
	d.Create, d.Bind, d.Limits = true, user, lim
	require.NoError(t, s.Commit(t.Context(), d))
	return v
}

func listed(t *testing.T, s session.Store, user string) int {
	t.Helper()
	return len(must(s.List(t.Context(), user, limits)))
}

func revoked(t *testing.T, s session.Store, user string) int {
	t.Helper()
	return must(s.Revoke(t.Context(), user, anySession))
}

// index returns the key of the only user's index.
func index(t *testing.T, c *redis.Client) string {
	t.Helper()
	keys := c.Keys(t.Context(), "session:user:*").Val()
	require.Len(t, keys, 1)
	return keys[0]
}

// entries returns the number of sessions in the only index.
func entries(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	return c.ZCard(t.Context(), index(t, c)).Val() - 1 // one member is the longest limit
}

func TestIndexOutlivesItsSessions(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	life := func(want time.Duration) {
		t.Helper()
		left := c.PTTL(t.Context(), index(t, c)).Val()
		require.Greater(t, left, want)
		require.Less(t, left, want+2*time.Minute)
	}
	newVisitor().loggedIn(t, s, "ada", limits)
	life(24 * time.Hour)
	testhost.AgeKey(t, c, older, 20*time.Hour)
	life(4 * time.Hour)
	newVisitor().loggedIn(t, s, "ada", storage.Limits{Idle: time.Hour, Absolute: 2 * time.Hour})
	life(24 * time.Hour) // because of the first session
	newVisitor().loggedIn(t, s, "ada", storage.Limits{Idle: time.Hour, Absolute: 100 * time.Hour})
	life(100 * time.Hour)
}

// TestBoundSessionEndsAsItWasBound makes the limit longer after a login. The session must still end before its index
// entry does, because Revoke needs the entry.
func TestBoundSessionEndsAsItWasBound(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	v := newVisitor().loggedIn(t, s, "ada", storage.Limits{Idle: time.Hour, Absolute: 2 * time.Hour})
	d := v.delta()
	d.Limits = storage.Limits{Idle: 10 * time.Hour, Absolute: 100 * time.Hour}
	testhost.AgeKey(t, c, older, 30*time.Minute)
	must(s.Load(t.Context(), v.locator, v.digest, d.Limits))
	require.NoError(t, s.Commit(t.Context(), d))
	expires(t, c, v, 90*time.Minute)
	testhost.AgeKey(t, c, older, 90*time.Minute)
	_, err := s.Load(t.Context(), v.locator, v.digest, d.Limits)
	require.ErrorIs(t, err, storage.ErrNotFound)
}

// TestRememberedSessionEndsBeforeItsIndexEntry also marks a session that is not bound to a user, which the store never
// does. Its limits then apply without an error of the script.
func TestRememberedSessionEndsBeforeItsIndexEntry(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	lim := storage.Limits{Idle: time.Hour, Absolute: 2 * time.Hour, Touch: time.Minute, Remembered: 50 * time.Hour}
	v := newVisitor()
	d := v.delta()
	d.Create, d.Bind, d.Remember, d.Limits = true, "ada", true, lim
	require.NoError(t, s.Commit(t.Context(), d))
	expires(t, c, v, 50*time.Hour)
	require.InDelta(t, 50*time.Hour, c.PTTL(t.Context(), index(t, c)).Val(), float64(2*time.Minute))
	newVisitor().loggedIn(t, s, "ada", lim)
	d = v.delta("a", "1")
	for range 2 {
		testhost.AgeKey(t, c, older, 20*time.Hour)
		lim.Remembered += 10 * time.Hour // for sessions that are bound from now on
		must(s.Load(t.Context(), v.locator, v.digest, lim))
		d.Limits = lim
		require.NoError(t, s.Commit(t.Context(), d))
	}
	expires(t, c, v, 10*time.Hour)
	require.Equal(t, 1, revoked(t, s, "ada"))

	v = newVisitor().created(t, s)
	require.NoError(t, c.HSet(t.Context(), v.key(), "remember", 1).Err())
	d = v.delta("a", "1")
	d.Limits = lim
	require.NoError(t, s.Commit(t.Context(), d))
	must(s.Load(t.Context(), v.locator, v.digest, lim))
	expires(t, c, v, 70*time.Hour)
}

func TestLongestLimitsAreForever(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	forever := storage.Limits{Idle: math.MaxInt64, Absolute: math.MaxInt64, Touch: time.Minute}
	v := newVisitor().loggedIn(t, s, "ada", forever)
	for range 3 { // the second and third load count as use
		require.Equal(t, "ada", must(s.Load(t.Context(), v.locator, v.digest, forever)).User)
		testhost.AgeKey(t, c, older, 10*365*24*time.Hour)
	}
	d := v.delta("a", "1")
	d.Limits = forever
	require.NoError(t, s.Commit(t.Context(), d))
	require.Equal(t, 1, revoked(t, s, "ada"))
}

func TestIndexDropsExpiredSessions(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	for range 3 {
		v := newVisitor().loggedIn(t, s, "ada", limits)
		require.NoError(t, c.Del(t.Context(), v.key()).Err()) // as if it had expired
	}
	require.Zero(t, listed(t, s, "ada"))
	require.EqualValues(t, 3, entries(t, c), "they might be about to be bound")
	testhost.AgeKey(t, c, older, 61*time.Second)
	kept := newVisitor().loggedIn(t, s, "ada", limits)
	require.Equal(t, 1, listed(t, s, "ada"))
	require.EqualValues(t, 1, entries(t, c))

	require.NoError(t, s.Destroy(t.Context(), kept.locator, kept.digest))
	testhost.AgeKey(t, c, older, 2*time.Minute)
	require.Zero(t, listed(t, s, "ada"))
	require.Empty(t, c.Keys(t.Context(), "*").Val(), "nothing is left of a user without sessions")
}

// TestIndexDropsRemovedSessions checks that the entry of a removed session is dropped at once.
func TestIndexDropsRemovedSessions(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	for name, remove := range map[string]func(v visitor) error{
		"Destroy":    func(v visitor) error { return s.Destroy(t.Context(), v.locator, v.digest) },
		"Revoke":     func(v visitor) error { return second(s.Revoke(t.Context(), "ada", v.only)) },
		"Revoke all": func(visitor) error { return second(s.Revoke(t.Context(), "ada", anySession)) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				require.NoError(t, remove(newVisitor().loggedIn(t, s, "ada", limits)))
			}
			require.Empty(t, c.Keys(t.Context(), "*").Val())
			kept, ended := newVisitor().loggedIn(t, s, "ada", limits), newVisitor().loggedIn(t, s, "ada", limits)
			revoked(t, s, "bob")
			require.ErrorIs(t, s.Destroy(t.Context(), kept.locator, ended.digest), storage.ErrGone)
			require.EqualValues(t, 2, entries(t, c))
			require.NoError(t, s.Destroy(t.Context(), ended.locator, ended.digest))
			require.EqualValues(t, 1, entries(t, c))
			require.Equal(t, 1, listed(t, s, "ada"))
			require.NoError(t, remove(kept))

			again := kept.loggedIn(t, s, "ada", limits) // with the same locator
			require.Equal(t, 1, listed(t, s, "ada"))
			require.NoError(t, remove(again))
		})
	}
}

// TestLogoutWithoutIndex checks that a logout removes the session even if it cannot drop the index entry.
func TestLogoutWithoutIndex(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	v := newVisitor().loggedIn(t, newStore(t, c, patient), "ada", limits)
	key := index(t, c)
	s := newStore(t, server.Client(tapped(func(conn net.Conn, p []byte) {
		if bytes.Contains(p, []byte(key)) {
			_ = conn.Close()
		}
	})), patient)
	require.NoError(t, s.Destroy(t.Context(), v.locator, v.digest))
	require.Zero(t, c.Exists(t.Context(), v.key()).Val())
	require.EqualValues(t, 1, entries(t, c))
}

// TestLoginDropsOldEntries has a user who logs in all day and whose sessions are never listed.
func TestLoginDropsOldEntries(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	for range 8 {
		newVisitor().loggedIn(t, s, "ada", limits)
		testhost.AgeKey(t, c, older, 7*time.Hour)
	}
	require.EqualValues(t, 4, entries(t, c))
}

// TestListBetweenTheTwoStepsOfALogin calls List and Revoke after a login has written the index entry and before it binds
// the session. The entry must stay, so that the session can be revoked later.
func TestListBetweenTheTwoStepsOfALogin(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	v := newVisitor()
	calls := 0
	slow := server.Client(tapped(func(_ net.Conn, p []byte) {
		if !bytes.Contains(p, []byte(v.key())) || calls > 0 {
			return
		}
		calls++
		require.Zero(t, listed(t, s, "ada"))
		must(s.Revoke(t.Context(), "ada", anySession))
	}))
	v.loggedIn(t, newStore(t, slow, patient), "ada", limits)
	require.Equal(t, 1, calls)
	require.Equal(t, 1, listed(t, s, "ada"))
	require.Equal(t, 1, must(s.Revoke(t.Context(), "ada", anySession)))
	_, err := s.Load(t.Context(), v.locator, v.digest, limits)
	require.ErrorIs(t, err, storage.ErrNotFound)
}

// tapped returns client options with which tap is called before each write to a connection.
func tapped(tap func(conn net.Conn, p []byte)) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &tappedConn{conn, tap}, err
		}
	}
}

type tappedConn struct {
	net.Conn
	tap func(conn net.Conn, p []byte)
}

func (c *tappedConn) Write(p []byte) (int, error) {
	c.tap(c.Conn, p)
	return c.Conn.Write(p)
}

// TestStaleIndexRevokesNoOtherUser puts wrong entries into an index. They must not end the sessions of other users.
func TestStaleIndexRevokesNoOtherUser(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	newVisitor().loggedIn(t, s, "ada", limits)
	ada := index(t, c)
	bob, anonymous := newVisitor().loggedIn(t, s, "bob", limits), newVisitor().created(t, s)
	list := newVisitor()
	require.NoError(t, c.RPush(t.Context(), list.key(), "x").Err())
	for _, v := range []visitor{bob, anonymous, list, newVisitor()} {
		require.NoError(t, c.ZAdd(t.Context(), ada, redis.Z{Score: 1, Member: string(v.locator[:])}).Err())
	}
	require.Equal(t, 1, listed(t, s, "ada"))
	require.EqualValues(t, 2, c.ZCard(t.Context(), ada).Val(), "the others are old and dropped")
	for _, v := range []visitor{bob, anonymous, list} {
		require.NoError(t, c.ZAdd(t.Context(), ada, redis.Z{Score: 1, Member: string(v.locator[:])}).Err())
	}
	require.Equal(t, 1, must(s.Revoke(t.Context(), "ada", anySession)))
	for _, v := range []visitor{bob, anonymous} {
		must(s.Load(t.Context(), v.locator, v.digest, limits))
	}
	require.EqualValues(t, 1, c.Exists(t.Context(), list.key()).Val())
}

// TestRoundTripsOfUserMethods counts the calls and round trips of operations on a user's sessions. No operation scans all
// keys.
func TestRoundTripsOfUserMethods(t *testing.T) {
	server := testhost.StartRedis(t)
	var writes atomic.Int64
	s := newStore(t, server.Client(tapped(func(net.Conn, []byte) { writes.Add(1) })), patient)
	newVisitor().loggedIn(t, s, "bob", limits) // loads the scripts
	listed(t, s, "bob")
	must(s.Revoke(t.Context(), "bob", anySession))
	costs := func(f func()) (calls int, trips int64) {
		before, _ := server.Calls("evalsha")
		sent := writes.Load()
		f()
		after, _ := server.Calls("evalsha")
		return after - before, writes.Load() - sent
	}
	v := newVisitor()
	calls, _ := costs(func() { v.loggedIn(t, s, "ada", limits) })
	require.Equal(t, 2, calls)
	calls, _ = costs(func() { require.NoError(t, s.Destroy(t.Context(), v.locator, v.digest)) })
	require.Equal(t, 2, calls)
	v = newVisitor().created(t, s)
	calls, _ = costs(func() { require.NoError(t, s.Destroy(t.Context(), v.locator, v.digest)) })
	require.Equal(t, 1, calls, "it had no user")
	for range 300 {
		newVisitor().loggedIn(t, s, "ada", limits)
	}
	calls, trips := costs(func() { require.Equal(t, 300, listed(t, s, "ada")) })
	require.Equal(t, 1+300, calls)
	require.LessOrEqual(t, trips, int64(100))
	calls, trips = costs(func() {
		require.Equal(t, 300, must(s.Revoke(t.Context(), "ada", anySession)))
	})
	require.Equal(t, 1+300+5, calls)
	require.LessOrEqual(t, trips, int64(100))
	t.Logf("%d round trips", trips)
	for _, command := range []string{"scan", "keys"} {
		calls, _ := server.Calls(command)
		require.Zero(t, calls, command)
	}
}

// TestInterruptedRevocationContinues checks that after a failed Revoke, the next Revoke ends the remaining sessions.
func TestInterruptedRevocationContinues(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	for range 200 {
		newVisitor().loggedIn(t, s, "ada", limits)
	}
	testhost.AgeKey(t, c, older, 2*time.Minute)
	locators := c.ZRange(t.Context(), index(t, c), 0, -1).Val() // in the order of age, after "longest"
	key := visitor{locator: storage.Locator([]byte(locators[151]))}.key()
	cut := newStore(t, server.Client(tapped(func(conn net.Conn, p []byte) {
		if bytes.Contains(p, []byte(key)) {
			_ = conn.Close()
		}
	})), patient)
	first, err := cut.Revoke(t.Context(), "ada", anySession)
	require.ErrorIs(t, err, redisstore.ErrNoReply)
	require.GreaterOrEqual(t, first, 128)
	require.EqualValues(t, 200-128, entries(t, c))
	second := must(s.Revoke(t.Context(), "ada", anySession))
	require.Equal(t, 200, first+second)
	require.Empty(t, c.Keys(t.Context(), "*").Val())
}

func TestLoginWithoutIndexMakesNoSession(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	newVisitor().loggedIn(t, s, "ada", limits)
	ada := index(t, c)
	require.NoError(t, c.Del(t.Context(), ada).Err())
	require.NoError(t, c.Set(t.Context(), ada, "x", 0).Err())
	v := newVisitor()
	d := v.delta()
	d.Create, d.Bind = true, "ada"
	require.Error(t, s.Commit(t.Context(), d))
	require.Zero(t, c.Exists(t.Context(), v.key()).Val())
	_, err := s.Revoke(t.Context(), "ada", anySession)
	require.Error(t, err, "sessions that cannot be found are not reported as revoked")
	require.Equal(t, "x", c.Get(t.Context(), ada).Val())
}
