package redisstore

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

const document = "../../docs/redis.md"

// TestDocumentedUserSuffices runs every kind of every rule as the restricted user of
// docs/redis.md, and denies it the rest: nearly each command of the list is needed.
func TestDocumentedUserSuffices(t *testing.T) {
	server := testhost.StartRedis(t)
	root := server.Client(nil)
	full := testhost.ParseUser(t, document, "limits")
	ops := func() (err error) {
		require.NoError(t, root.FlushAll(t.Context()).Err())
		require.NoError(t, root.ScriptFlush(t.Context()).Err())
		return everything(t, server.ClientAs("limits"))
	}
	server.SetUser("limits", full)
	require.NoError(t, ops())
	c := server.ClientAs("limits")
	require.ErrorContains(t, c.Set(t.Context(), "elsewhere", 1, 0).Err(), "NOPERM")
	require.ErrorContains(t, c.FlushAll(t.Context()).Err(), "NOPERM")

	for i, word := range full {
		command, ok := strings.CutPrefix(word, "+")
		if !ok {
			continue
		}
		switch command {
		case "eval", "ping", "hello": // the test's client can do without
			continue
		}
		server.SetUser("limits", slices.Delete(slices.Clone(full), i, i+1))
		require.Error(t, ops(), "without %s", command)
	}
}

// everything runs every kind of op by every rule, valid and invalid.
func everything(t *testing.T, c *redis.Client) error {
	clock := time.Unix(1_000_000_000, 0)
	own := newStore(t, c, patient)
	own.clock = func() time.Time { return clock }
	for _, store := range []*Store{newStore(t, c, patient), own} {
		for _, block := range []ratelimit.Block{{}, {After: 1, For: time.Minute}} {
			for _, r := range lasting(block) {
				for range 3 {
					var charged ratelimit.Receipt
					for i := range 3 {
						res, err := store.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})
						if err != nil {
							return err
						}
						if i < 2 {
							charged = res.Receipt
						}
						clock = clock.Add(time.Second)
					}
					for range 2 { // of one moment, for the clock that stands still
						if _, err := store.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Add}); err != nil {
							return err
						}
					}
					for _, op := range allKinds(r, charged) {
						if _, err := store.DoOne(t.Context(), op); err != nil {
							return err
						}
					}
					clock = clock.Add(10 * time.Second)
				}
			}
		}
	}
	return nil
}

// TestDocumentedMemory compares the memory of each rule's key with the table in
// docs/redis.md.
func TestDocumentedMemory(t *testing.T) {
	all, err := os.ReadFile(document)
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(all), "## Memory")
	c := testhost.StartRedis(t).Client(nil)
	clock := time.Unix(1_000_000_000, 0)
	s := newStore(t, c, patient)
	s.clock = func() time.Time { return clock }
	log := ratelimit.SlidingLog(1<<30, time.Hour)
	for _, tt := range []struct {
		name  string
		rule  ratelimit.Rule
		takes int
	}{
		{"FixedWindow", ratelimit.FixedWindow(1<<30, time.Hour), 10},
		{"GCRA", ratelimit.GCRA(1<<20, time.Minute), 10},
		{"Buckets, 12 of them", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 30, Span: time.Minute}), 10},
		{"Buckets, 120 of them", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 30}), 10},
		{"PerSecond to PerDay, and Per", ratelimit.PerDay(1000), 10},
		{"SlidingLog, 10 events", log, 10},
		{"SlidingLog, 1000 events", log, 1000},
		{"SlidingLog as a stream, 10 events", log.WithStream(), 10},
		{"SlidingLog as a stream, 1000 events", log.WithStream(), 1000},
	} {
		for range tt.takes {
			do(t, s, ratelimit.Op{Rule: tt.rule, Key: "192.0.2.1", N: 1, Kind: ratelimit.Take})
			clock = clock.Add(time.Millisecond)
		}
		_, row, found := strings.Cut(text, "| "+tt.name+" | ")
		require.True(t, found, tt.name)
		var want int
		_, err = fmt.Sscan(row, &want)
		require.NoError(t, err)
		testhost.CheckMemory(t, c, keyOf(s, "192.0.2.1", tt.rule), want, 0.1)
		do(t, s, ratelimit.Op{Rule: tt.rule, Key: "192.0.2.1", Kind: ratelimit.Reset})
	}
}
