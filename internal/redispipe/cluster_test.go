package redispipe

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

// both is of two keys a call.
var both = NewScript(`
	local out = {}
	for i = 1, #KEYS, 2 do
		out[#out + 1] = redis.call('INCR', KEYS[i]) + redis.call('INCR', KEYS[i + 1])
	end
	return out`)

// ask runs a call of incr or both.
func ask(ctx context.Context, p *Pipe, s *Script, keys ...string) error {
	c := Call{Script: s, Keys: keys, Replies: 1}
	if s == incr {
		c.Args = []any{1}
	}
	_, err := p.Run(ctx, c)
	return err
}

// TestASlotOnItsWay runs scripts while a slot is half moved: of a key that has moved, of
// one that has not, of one that is new, and of two that are apart.
func TestASlotOnItsWay(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	client := c.Client(nil)
	p := newPipe(t, client, Options{Timeout: 10 * time.Second})
	run := func(s *Script, keys ...string) {
		t.Helper()
		require.NoError(t, ask(t.Context(), p, s, keys...))
	}
	many := func(s *Script, keys ...string) {
		t.Helper()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				if err := ask(t.Context(), p, s, keys...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	run(both, "{a}1", "{a}2")
	slot := c.Slot("{a}")
	m := c.BeginMove(slot, c.Masters(slot)[1])
	require.Equal(t, 1, m.Keys(1))
	for i := range 3 {
		run(incr, fmt.Sprint("{a}", i))
		many(incr, fmt.Sprint("{a}", i))
	}
	var joined sync.WaitGroup // one command where the slot is whole
	for i := range 3 {
		joined.Go(func() { many(incr, fmt.Sprint("{a}", i)) })
	}
	joined.Wait()
	var apart sync.WaitGroup
	apart.Go(func() { many(both, "{a}1", "{a}2") })
	<-time.After(50 * time.Millisecond) // so long they are apart
	m.End()
	apart.Wait()
	for i, want := range []int{33 + 32, 33 + 32 + 33, 33 + 32 + 33} {
		n, err := client.Get(t.Context(), fmt.Sprint("{a}", i)).Int()
		require.NoError(t, err)
		require.Equal(t, want, n, "each script ran once")
	}
}

// TestAMasterDies checks that its heir is found soon, although nobody tells the client.
func TestAMasterDies(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	p := newPipe(t, c.Client(nil), Options{})
	works := func() bool {
		err := ask(t.Context(), p, incr, "a")
		return err == nil
	}
	require.Eventually(t, works, 20*time.Second, 10*time.Millisecond)
	c.KillMaster(c.Slot("a"))
	require.Eventually(t, works, 20*time.Second, 10*time.Millisecond)
}

// TestKeysThatStayApart checks that trying again ends in time, with what Redis says, and
// that others don't wait for it.
func TestKeysThatStayApart(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	p := newPipe(t, c.Client(nil), Options{Timeout: 2 * time.Second, InFlight: 1})
	err := ask(t.Context(), p, both, "{a}1", "{a}2")
	require.NoError(t, err)
	slot := c.Slot("{a}")
	m := c.BeginMove(slot, c.Masters(slot)[1])
	require.Equal(t, 1, m.Keys(1))

	began := time.Now()
	apart := make(chan error)
	go func() {
		err := ask(t.Context(), p, both, "{a}1", "{a}2")
		apart <- err
	}()
	for range 20 {
		<-time.After(5 * time.Millisecond) // what is asked for at one moment waits together
		err := ask(t.Context(), p, incr, "b")
		require.NoError(t, err)
		require.Less(t, time.Since(began), 1500*time.Millisecond)
	}
	require.True(t, redis.IsTryAgainError(<-apart))
	require.Less(t, time.Since(began), 2*time.Second+50*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = ask(ctx, p, both, "{a}1", "{a}2")
	require.ErrorIs(t, err, context.DeadlineExceeded, "a caller can leave")
}
