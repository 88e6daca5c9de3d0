package redisstore_test

import (
	"crypto/rand"
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
	"github.com/lazyreq/lazyreq/session/storetest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // parallel tests mostly wait for Redis
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}

// patient has a long timeout, for tests that are not about timeouts, because the machine may be busy.
var patient = redisstore.Options{Timeout: 10 * time.Second}

var limits = storage.Limits{Idle: time.Hour, Absolute: 24 * time.Hour, Touch: time.Minute}

func newStore(t testing.TB, c redis.UniversalClient, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s := must(redisstore.New(c, o))
	return s
}

// visitor is a session's locator and its secret's digest.
type visitor struct {
	locator storage.Locator
	digest  storage.Digest
}

func newVisitor() (v visitor) {
	rand.Read(v.locator[:])
	rand.Read(v.digest[:])
	return v
}

// only reports whether l is the locator of v's session.
func (v visitor) only(l storage.Locator) bool { return l == v.locator }

func anySession(storage.Locator) bool { return true }

func second[T any](_ T, err error) error { return err }

func (v visitor) key() string { return "session:" + v.locator.Key() }

func (v visitor) delta(fields ...string) storage.Delta {
	d := storage.Delta{Locator: v.locator, Digest: v.digest, Limits: limits, Changes: map[string]storage.Change{}}
	for i := 0; i < len(fields); i += 2 {
		d.Changes[fields[i]] = storage.Change{Op: storage.OpSet, Value: []byte(fields[i+1])}
	}
	return d
}

func (v visitor) created(t testing.TB, s session.Store, fields ...string) visitor {
	t.Helper()
	d := v.delta(fields...)
	d.Create = true
	require.NoError(t, s.Commit(t.Context(), d))
	return v
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := redisstore.New(nil, redisstore.Options{})
	require.ErrorContains(t, err, "no client")
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	for _, timeout := range []time.Duration{-1, 30*time.Second + 1} {
		_, err = redisstore.New(c, redisstore.Options{Timeout: timeout})
		var wrong *option.Error
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Options.Timeout", wrong.Field)
	}
}

func TestRedisConformsToStore(t *testing.T) {
	server := testhost.StartRedis(t)
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			c := server.Client(func(o *redis.Options) { o.Protocol = protocol })
			storetest.Run(t, aging(c))
		})
	}
}

// TestRedisClusterConformsToStore runs the suite with sessions and users' indexes on different nodes.
func TestRedisClusterConformsToStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, aging(testhost.StartCluster(t).Client(nil)))
}

func TestRedisSentinelConformsToStore(t *testing.T) {
	storetest.Run(t, aging(testhost.StartSentinel(t).Client(nil)))
}

// aging returns a host whose Advance makes all keys of a real server older, because its clock cannot be moved.
func aging(c redis.UniversalClient) storetest.Host { return agingAs(c, c) }

// agingAs is like aging, for a client that may not run all commands. admin may.
func agingAs(c, admin redis.UniversalClient) storetest.Host {
	return storetest.Host{
		Unit: time.Minute,
		Open: func(t *testing.T) session.Store {
			testhost.FlushAll(t, admin)
			return newStore(t, c, patient)
		},
		Advance: func(t *testing.T, d time.Duration) { testhost.AgeKey(t, admin, older, d) },
	}
}

// older makes a session or an index ARGV[1] µs older. It subtracts one more millisecond from the expiry, which the store
// may have rounded up.
var older = redis.NewScript(`
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return redis.error_reply('NOEXPIRY a key without expiry') end
if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if member ~= 'longest' then redis.call('ZINCRBY', KEYS[1], '-' .. ARGV[1], member) end
  end
else
  for _, field in ipairs({'created', 'touched', 'grace', 'over'}) do
    if redis.call('HEXISTS', KEYS[1], field) == 1 then redis.call('HINCRBY', KEYS[1], field, '-' .. ARGV[1]) end
  end
end
return redis.call('PEXPIRE', KEYS[1], left - ARGV[1] / 1000 - 1)`)

// TestMiniredisConformsToStore runs the suite on a server whose clock differs from this machine's and can be moved.
func TestMiniredisConformsToStore(t *testing.T) {
	var server *testhost.Miniredis
	storetest.Run(t, storetest.Host{
		Open: func(t *testing.T) session.Store {
			server = testhost.StartMiniredis(t)
			return newStore(t, server.Client(), patient)
		},
		Advance: func(_ *testing.T, d time.Duration) {
			server.Advance(d)
			server.FastForward(d)
		},
	})
}

func TestPrefixKeepsApplicationsApart(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	one := newStore(t, c, redisstore.Options{Prefix: "one:", Timeout: patient.Timeout})
	two := newStore(t, c, redisstore.Options{Prefix: "two:", Timeout: patient.Timeout})
	v := newVisitor().created(t, one)
	v.created(t, two)
	require.NoError(t, one.Destroy(t.Context(), v.locator, v.digest))
	require.Equal(t, []string{"two:" + v.locator.Key()}, c.Keys(t.Context(), "*").Val())
}

func TestOperationIsOneCall(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	v := newVisitor()
	create, change := v.delta("user", "ada"), v.delta("user", "bob", "cart", "3")
	create.Create = true
	change.Changes["gone"] = storage.Change{Op: storage.OpDelete}
	steps := []struct {
		name string
		call func() error
	}{
		{"create", func() error { return s.Commit(t.Context(), create) }},
		{"change", func() error { return s.Commit(t.Context(), change) }},
		{"load", func() error { _, err := s.Load(t.Context(), v.locator, v.digest, limits); return err }},
		{"load and touch", func() error {
			_, err := s.Load(t.Context(), v.locator, v.digest, storage.Limits{Idle: time.Hour, Absolute: time.Hour})
			return err
		}},
		{"destroy", func() error { return s.Destroy(t.Context(), v.locator, v.digest) }},
	}
	for _, step := range steps { // the first round loads the scripts
		require.NoError(t, step.call(), step.name)
	}
	sources, _ := server.Calls("eval")
	for _, step := range steps {
		before, _ := server.Calls("evalsha")
		require.NoError(t, step.call(), step.name)
		after, _ := server.Calls("evalsha")
		require.Equal(t, 1, after-before, step.name)
	}
	again, _ := server.Calls("eval")
	require.Equal(t, sources, again)
}

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
