package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

const perField = 64

func TestSessionHasALargestSize(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	full := strings.Repeat("x", redisstore.MaxBytes-perField-1)

	v := newVisitor()
	d := v.delta("f", full+"x")
	d.Create = true
	require.ErrorIs(t, s.Commit(t.Context(), d), storage.ErrTooLarge)
	require.Zero(t, c.Exists(t.Context(), v.key()).Val())

	v.created(t, s, "f", full)
	before := c.HGetAll(t.Context(), v.key()).Val()
	d = v.delta("g", "")
	d.Rotate = storage.Digest{1}
	require.ErrorIs(t, s.Commit(t.Context(), d), storage.ErrTooLarge)
	require.ErrorIs(t, s.Commit(t.Context(), v.delta("f", full+"x")), storage.ErrTooLarge)
	require.True(t, maps.Equal(before, c.HGetAll(t.Context(), v.key()).Val()), "a refused save changes nothing")

	d = v.delta("g", full)
	d.Changes["f"] = storage.Change{Op: storage.OpDelete}
	require.NoError(t, s.Commit(t.Context(), d), "what goes makes room for what comes")
	require.NoError(t, c.HSet(t.Context(), v.key(), "size", 2*redisstore.MaxBytes).Err())
	require.NoError(t, s.Commit(t.Context(), v.delta("g", full[1:])), "what is too large may shrink")

	server.Stop()
	require.ErrorIs(t, s.Commit(t.Context(), v.delta("f", full+"x")), storage.ErrTooLarge, "it is not even sent")
}

// TestSizeIsKept makes random commits. After each, the stored size must be the sum of the sizes of the fields.
func TestSizeIsKept(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	v := newVisitor().created(t, s)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for step := range 300 {
		d := v.delta()
		for range r.IntN(5) {
			name := strings.Repeat("n", 1+r.IntN(6))
			d.Changes[name] = storage.Change{Op: storage.OpDelete}
			if r.IntN(3) > 0 {
				d.Changes[name] = storage.Change{Op: storage.OpSet, Value: make([]byte, r.IntN(4))}
			}
		}
		require.NoError(t, s.Commit(t.Context(), d))
		rec := must(s.Load(t.Context(), v.locator, v.digest, limits))
		want := 0
		for name, value := range rec.Fields {
			want += perField + len(name) + len(value)
		}
		require.Equal(t, strconv.Itoa(want), c.HGet(t.Context(), v.key(), "size").Val(), "seed %d, step %d", seed, step)
	}
}

// TestCallerMayReuseItsBytes changes the bytes of a value after Commit has returned but before Redis has received them.
func TestCallerMayReuseItsBytes(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	v := newVisitor().created(t, s)
	const size = redisstore.MaxBytes - 1000
	value := []byte(strings.Repeat("a", size))

	resume := server.Pause()
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	d := v.delta()
	d.Changes["f"] = storage.Change{Op: storage.OpSet, Value: value}
	require.ErrorIs(t, s.Commit(ctx, d), context.DeadlineExceeded)
	for i := range value {
		value[i] = 'b'
	}
	resume()

	var got []byte
	require.Eventually(t, func() bool {
		rec, err := s.Load(t.Context(), v.locator, v.digest, limits)
		got = rec.Fields["f"]
		return err == nil && len(got) == size
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, size, strings.Count(string(got), "a"), fmt.Sprintf("the bytes are from before: %.20q", got))
}
