package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// request returns an attempt to acquire a lease of a minute.
func request(id byte) coord.LeaseRequest {
	return coord.LeaseRequest{ID: [16]byte{id}, Name: "one", Lifetime: time.Minute}
}

func TestRedisOptionsAreChecked(t *testing.T) {
	_, err := redisstore.New(nil, redisstore.Options{})
	require.ErrorContains(t, err, "no client")
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	_, err = redisstore.New(c, redisstore.Options{Timeout: -1})
	require.ErrorContains(t, err, "Options.Timeout")
}

// TestUnknownTokenLeavesNoKey checks that operations on unknown tokens and leases do not create keys.
func TestUnknownTokenLeavesNoKey(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	tokens := newTokens(t, newStore(t, c, patient))
	_, err := tokens.Use(t.Context(), coord.NewID(), "ada")
	require.ErrorIs(t, err, coord.ErrUnknown)
	_, err = tokens.Inspect(t.Context(), coord.NewID())
	require.ErrorIs(t, err, coord.ErrUnknown)
	require.ErrorIs(t, tokens.Revoke(t.Context(), coord.NewID()), coord.ErrUnknown)
	require.ErrorIs(t, tokens.Issue(t.Context(), coord.NewID(), make([]byte, 1<<20), time.Minute), coord.ErrInvalid)
	s := newStore(t, c, patient)
	require.ErrorIs(t, s.Release(t.Context(), "u", request(1)), coord.ErrLost)
	require.ErrorIs(t, s.Renew(t.Context(), "u", request(1)), coord.ErrLost)
	require.Empty(t, c.Keys(t.Context(), "*").Val())
}

// TestDumpContainsNoUsableToken checks that the content of Redis has no id of a token.
func TestDumpContainsNoUsableToken(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	tokens := newTokens(t, newStore(t, c, patient))
	id := coord.NewID()
	require.NoError(t, tokens.Issue(t.Context(), id, []byte("a vm"), time.Minute))
	must(tokens.Use(t.Context(), id, "ada"))
	keys := c.Keys(t.Context(), "*").Val()
	require.Len(t, keys, 1)
	require.Regexp(t, `^coord:token:[A-Za-z0-9_-]{43}$`, keys[0])
	require.NotContains(t, keys[0], id)
	for _, value := range c.HGetAll(t.Context(), keys[0]).Val() {
		require.NotContains(t, value, id)
	}
	_, err := tokens.Use(t.Context(), strings.TrimPrefix(keys[0], "coord:token:"), "eve")
	require.ErrorIs(t, err, coord.ErrUnknown)
}

// expires fails the test unless the key expires after want, or a little earlier because of the duration of the test.
func expires(t *testing.T, c *redis.Client, name string, want time.Duration) {
	t.Helper()
	left := must(c.PTTL(t.Context(), name).Result())
	require.LessOrEqual(t, left, want+time.Millisecond)
	require.Greater(t, left, want-30*time.Second)
}

func only(t *testing.T, c *redis.Client) string {
	t.Helper()
	keys := c.Keys(t.Context(), "*").Val()
	require.Len(t, keys, 1)
	return keys[0]
}

func TestKeysOfTokensExpire(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	for name, use := range map[string]func() error{
		"use":    func() error { _, err := s.Use(t.Context(), key(1), ""); return err },
		"revoke": func() error { return s.Revoke(t.Context(), key(1)) },
	} {
		require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Hour, 2*time.Hour))
		expires(t, c, only(t, c), 3*time.Hour)
		testhost.AgeKey(t, c, older, 30*time.Minute)
		require.True(t, c.Persist(t.Context(), only(t, c)).Val())
		require.NoError(t, use(), name)
		expires(t, c, only(t, c), 150*time.Minute) // the call has set the expiry again
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
}

func TestKeysOfLeasesExpire(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	r := request(1)
	lost := func() { t.Helper(); require.True(t, c.Persist(t.Context(), "coord:lease:u").Val()) }
	acquire := func() {
		t.Helper()
		must(s.Acquire(t.Context(), "u", r))
	}
	renew := func() {
		t.Helper()
		require.NoError(t, s.Renew(t.Context(), "u", r))
	}
	acquire()
	expires(t, c, "coord:lease:u", 61*time.Minute) // the number is remembered for an hour after the lease
	lost()
	renew()
	expires(t, c, "coord:lease:u", 61*time.Minute)
	lost()
	require.NoError(t, s.Release(t.Context(), "u", r))
	expires(t, c, "coord:lease:u", time.Hour)
	lost()
	acquire()
	expires(t, c, "coord:lease:u", 61*time.Minute)
	require.NoError(t, s.Release(t.Context(), "u", r))

	r.MinInterval = 100 * time.Hour // neither a renewal nor a release shortens it
	testhost.AgeKey(t, c, older, 100*time.Hour)
	acquire()
	expires(t, c, "coord:lease:u", 100*time.Hour)
	testhost.AgeKey(t, c, older, 30*time.Second)
	renew()
	require.NoError(t, s.Release(t.Context(), "u", r))
	expires(t, c, "coord:lease:u", 100*time.Hour-30*time.Second)
}

// TestExpiryByStoredTimes checks that a token is forgotten in time even if its key has lost its expiry.
func TestExpiryByStoredTimes(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	for range 2 {
		require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Minute, time.Minute))
		require.True(t, c.Persist(t.Context(), only(t, c)).Val())
		for _, field := range []string{"issued", "expires", "forgotten"} {
			require.NoError(t, c.HIncrBy(t.Context(), only(t, c), field, -(2*time.Minute).Microseconds()).Err())
		}
	}
	_, err := s.Use(t.Context(), key(1), "")
	require.ErrorIs(t, err, coord.ErrUnknown)
	require.Empty(t, c.Keys(t.Context(), "*").Val())
}

func TestExpiryByServerClock(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	before := c.Time(t.Context()).Val()
	require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Minute, 0))
	number := must(s.Acquire(t.Context(), "u", request(1)))
	after := c.Time(t.Context()).Val()
	tok := must(s.Inspect(t.Context(), key(1)))
	for _, at := range []time.Time{tok.Issued, time.UnixMicro(number)} {
		require.False(t, at.Before(before) || at.After(after), "at %v, not in %v to %v", at, before, after)
	}
}

// TestNumbersGrowWhenTheClockGoesBack checks that a user's numbers grow if the last one is ahead of the clock.
func TestNumbersGrowWhenTheClockGoesBack(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	first := must(s.Acquire(t.Context(), "u", request(1)))
	require.NoError(t, s.Release(t.Context(), "u", request(1)))
	ahead := first + time.Hour.Microseconds()
	require.NoError(t, c.HSet(t.Context(), "coord:lease:u", "number", ahead).Err())
	for i := range int64(3) {
		require.Equal(t, ahead+1+i, must(s.Acquire(t.Context(), "u", request(1))))
		require.NoError(t, s.Release(t.Context(), "u", request(1)))
	}
}

// TestClockGoesBackAfterALease checks what MinInterval means if the last lease began later than now, because the
// clock was set back.
func TestClockGoesBackAfterALease(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	first := must(s.Acquire(t.Context(), "u", request(1)))
	require.NoError(t, s.Release(t.Context(), "u", request(1)))
	require.NoError(t, c.HSet(t.Context(), "coord:lease:u", "since", first+time.Hour.Microseconds()).Err())
	often := request(1)
	often.MinInterval = time.Minute
	_, err := s.Acquire(t.Context(), "u", often)
	var denied *coord.DeniedError
	require.ErrorAs(t, err, &denied)
	require.Equal(t, time.Minute, denied.RetryAfter, "the interval and not the step of the clock")
	_, err = s.Acquire(t.Context(), "u", request(1))
	require.NoError(t, err, "without an interval")
}

func TestPrefixKeepsApplicationsApart(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	one := newStore(t, c, redisstore.Options{Prefix: "one:", Timeout: patient.Timeout})
	two := newStore(t, c, redisstore.Options{Prefix: "two:", Timeout: patient.Timeout})
	for _, s := range []*redisstore.Store{one, two} {
		require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Minute, 0))
		must(s.Acquire(t.Context(), "u", request(1)))
	}
	require.NoError(t, one.Revoke(t.Context(), key(1)))
	must(two.Use(t.Context(), key(1), ""))
	require.Len(t, c.Keys(t.Context(), "one:*").Val(), 2)
	require.Len(t, c.Keys(t.Context(), "two:*").Val(), 2)
}

func TestOperationIsOneCall(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	ctx, r := t.Context(), request(1)
	steps := []struct {
		name string
		call func(n int) error
	}{
		{"issue", func(n int) error { return s.Issue(ctx, key(n), []byte("a vm"), time.Minute, time.Minute) }},
		{"inspect", func(n int) error { _, err := s.Inspect(ctx, key(n)); return err }},
		{"use", func(n int) error { _, err := s.Use(ctx, key(n), "ada"); return err }},
		{"issue another", func(n int) error { return s.Issue(ctx, key(n+10), nil, time.Minute, time.Minute) }},
		{"revoke", func(n int) error { return s.Revoke(ctx, key(n+10)) }},
		{"acquire", func(int) error { _, err := s.Acquire(ctx, "u", r); return err }},
		{"renew", func(int) error { return s.Renew(ctx, "u", r) }},
		{"release", func(int) error { return s.Release(ctx, "u", r) }},
	}
	for _, step := range steps { // loads the scripts
		require.NoError(t, step.call(1), step.name)
	}
	sources, _ := server.Calls("eval")
	for _, step := range steps {
		before, _ := server.Calls("evalsha")
		require.NoError(t, step.call(2), step.name)
		after, _ := server.Calls("evalsha")
		require.Equal(t, 1, after-before, step.name)
	}
	again, _ := server.Calls("eval")
	require.Equal(t, sources, again)
}

// TestDocumentedMemory checks the sizes of tokens and users that docs/coord.md states.
func TestDocumentedMemory(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	for metadata, want := range map[int]int{0: 220, 1000: 1600} {
		require.NoError(t, s.Issue(t.Context(), key(1), make([]byte, metadata), time.Minute, time.Minute))
		must(s.Use(t.Context(), key(1), "192.0.2.1:49152"))
		testhost.CheckMemory(t, c, only(t, c), want, 0.2)
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
	r := request(1)
	r.Name = "worker-17.example:4711"
	must(s.Acquire(t.Context(), "192.0.2.1", r))
	testhost.CheckMemory(t, c, "coord:lease:192.0.2.1", 220, 0.2)
}

// TestRenewalAfterTheClockWasSetBack checks that a lease can be renewed after the clock of Redis was set back.
func TestRenewalAfterTheClockWasSetBack(t *testing.T) {
	server := testhost.StartMiniredis(t)
	s := newStore(t, server.Client(), patient)
	r := coord.LeaseRequest{Name: "one", Lifetime: 30 * time.Second}
	must(s.Acquire(t.Context(), "u", r))
	server.Advance(-time.Minute)
	for range 10 {
		require.NoError(t, s.Renew(t.Context(), "u", r))
		server.Advance(10 * time.Second)
	}
}
