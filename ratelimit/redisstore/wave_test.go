package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/ratelimit"
)

func limited(t *testing.T, limit int64) ratelimit.Rule {
	t.Helper()
	return ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: limit, Per: time.Hour}))
}

func takeOf(r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take, Apart: true}
}

// commands returns how many scripts ops were, once Redis knows them.
func commands(t *testing.T, server *redistest.Server, s *Store, ops ...ratelimit.Op) (int, []ratelimit.Result) {
	t.Helper()
	do(t, s, ops...)
	for i := range ops {
		do(t, s, ratelimit.Op{Rule: ops[i].Rule, Key: ops[i].Key, Kind: ratelimit.Reset})
	}
	before, _ := server.Calls("evalsha")
	results := do(t, s, ops...)
	after, _ := server.Calls("evalsha")
	return after - before, results
}

// TestGroupsShareATrip counts commands: all takes by one rule are one, groups of one script
// are one.
func TestGroupsShareATrip(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client(nil), patient)
	r, gcra := limited(t, 3), ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 3, Per: time.Hour}))
	var ops []ratelimit.Op
	for i := range 50 {
		ops = append(ops, takeOf(r, fmt.Sprint("many", i), 1))
	}
	n, _ := commands(t, server, s, ops...)
	require.Equal(t, 1, n)

	peek := takeOf(r, "p", 1)
	peek.Kind = ratelimit.Peek
	n, _ = commands(t, server, s, takeOf(r, "a", 1), takeOf(gcra, "b", 1), peek, takeOf(gcra, "c", 2), takeOf(r, "d", 2))
	require.Equal(t, 3, n, "windows, GCRAs, the rest")
	for name, r := range lasting(ratelimit.Block{}) {
		n, results := commands(t, server, s, takeOf(r, "a", 1), takeOf(r, "a", 1), takeOf(r, "b", 1), takeOf(r, "a", 3), takeOf(r, "a", 2))
		require.Equal(t, 1, n, "%s: one list has its keys in order", name)
		require.Equal(t, []int64{4, 3, 4, 0, 0}, remains(results), name)
		require.False(t, results[4].Allowed, name)
	}
}

func remains(results []ratelimit.Result) (out []int64) {
	for _, r := range results {
		out = append(out, r.Remaining)
	}
	return out
}

// TestGroupsOfOneKeyKeepTheirOrder has them of different scripts.
func TestGroupsOfOneKeyKeepTheirOrder(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client(nil), patient)
	r := limited(t, 100)
	tier := ratelimit.Must(r.WithLimit(50))
	count, reset := takeOf(r, "k", 0), takeOf(r, "k", 0)
	count.Kind, reset.Kind = ratelimit.Count, ratelimit.Reset
	for range 20 {
		ops := []ratelimit.Op{takeOf(r, "k", 1), count, takeOf(r, "k", 1), takeOf(r, "k", 1), count, takeOf(tier, "k", 4), reset, takeOf(r, "other", 1), count}
		n, results := commands(t, server, s, ops...)
		require.Equal(t, 8, n, "one for each in turn, and the other key's beside the reset")
		require.Equal(t, []int64{1, 3, 0}, []int64{results[1].Count, results[4].Count, results[8].Count})
		require.EqualValues(t, 43, results[5].Remaining)
	}
}

func TestJoinedIsHowManyDecisionsShareACommand(t *testing.T) {
	server := redistest.Start(t)
	r := limited(t, 100)
	var ops []ratelimit.Op
	for i := range 10 {
		ops = append(ops, takeOf(r, fmt.Sprint("k", i), 1))
	}
	for joined, want := range map[int]int{1: 10, 4: 3, 0: 1} {
		s := newStore(t, server.Client(nil), Options{Timeout: patient.Timeout, Joined: joined})
		n, _ := commands(t, server, s, ops...)
		require.Equal(t, want, n, "Joined: %d", joined)
	}
	_, err := New(server.Client(nil), Options{Joined: -1})
	require.ErrorContains(t, err, "Options.Joined is -1")
}

// TestManyKeysOfACluster has a client that knows of the Cluster, and one that finds out.
func TestManyKeysOfACluster(t *testing.T) {
	server, plain, cluster := redistest.StartNode(t)
	for name, client := range map[string]redis.UniversalClient{"plain": plain, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, client, patient)
			r := limited(t, 5)
			var ops []ratelimit.Op
			var want []int64
			for i := range 40 {
				ops = append(ops, takeOf(r, fmt.Sprint(name, i%10), 1))
				want = append(want, int64(4-i/10))
			}
			require.Equal(t, want, remains(do(t, s, ops...)))
			before, _ := server.Calls("evalsha")
			do(t, s, ops...)
			after, _ := server.Calls("evalsha")
			require.Equal(t, before+10, after, "one for each slot")
		})
	}
}

// TestAWaveSaysWhatIsForeign has one bad key among good ones, which are charged.
func TestAWaveSaysWhatIsForeign(t *testing.T) {
	c := redistest.Start(t).Client(nil)
	s := newStore(t, c, patient)
	r := limited(t, 5)
	require.NoError(t, c.HSet(t.Context(), keyOf(s, "bad", r), "f", "v").Err())
	_, err := s.Do(t.Context(), []ratelimit.Op{takeOf(r, "a", 1), takeOf(r, "bad", 1), takeOf(r, "b", 1)})
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, "{bad}")
	for _, key := range []string{"a", "b"} {
		peek := takeOf(r, key, 1)
		peek.Kind = ratelimit.Peek
		require.EqualValues(t, 4, do(t, s, peek)[0].Remaining)
	}
}

// manyOf returns equal takes of one key.
func manyOf(op ratelimit.Op, times int) []ratelimit.Op {
	return slices.Repeat([]ratelimit.Op{op}, times)
}

func TestManyTakesAreOneCommand(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client(nil), patient)
	take := takeOf(limited(t, 300), "k", 2)
	do(t, s, take)
	before, _ := server.Calls("evalsha")
	results := do(t, s, manyOf(take, 1000)...)
	after, _ := server.Calls("evalsha")
	require.Equal(t, before+1, after)
	require.EqualValues(t, 296, results[0].Remaining)
	require.True(t, results[148].Allowed)
	require.False(t, results[149].Allowed)
}

// TestManyTakesOverflow has a counter of buckets of which all but the newest are out of the
// window, and together too many.
func TestManyTakesOverflow(t *testing.T) {
	s, clock := onRedis(t)
	r := ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 52, Per: time.Minute}))
	for range 2 {
		do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1 << 51, Kind: ratelimit.Add})
		clock.Advance(2 * time.Minute)
	}
	do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1<<53 - 1<<52 - 1<<30, Kind: ratelimit.Add})
	clock.Advance(2 * time.Minute)
	_, err := s.Do(t.Context(), manyOf(takeOf(r, "k", 1<<20), 1<<11))
	require.ErrorIs(t, err, ratelimit.ErrOverflow)
	require.Zero(t, do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Count})[0].Count)
}
