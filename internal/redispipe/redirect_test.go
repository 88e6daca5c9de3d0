package redispipe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestContradictoryRedirections uses two nodes that redirect every call to each other.
func TestContradictoryRedirections(t *testing.T) {
	for _, kind := range []string{"MOVED", "ASK"} {
		t.Run(kind, func(t *testing.T) {
			var a, b *fake
			a = newFake(t, func([]string) string { return "-" + kind + " 1 " + b.Addr + "\r\n" })
			b = newFake(t, func([]string) string { return "-" + kind + " 1 " + a.Addr + "\r\n" })
			p := fakeCluster(t, a)
			for i, r := range p.RunAll(t.Context(), long, []Call{add("a", 1), add("b", 1)}) {
				require.True(t, redis.HasErrorPrefix(r.Err, kind), "%d: %v", i, r.Err)
			}
			require.Equal(t, 2*(maxRedirects+1), a.count("evalsha")+b.count("evalsha"))
		})
	}
}

func fakeCluster(t *testing.T, first *fake) *Pipe {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{first.Addr}, ClusterSlots: allAt(first.Addr), Protocol: 2, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = c.Close() })
	return newPipe(t, c)
}

// TestRedirections checks that a call follows a redirection to a server that does not know the script.
func TestRedirections(t *testing.T) {
	other := newFake(t, func(args []string) string {
		switch args[0] {
		case "asking":
			return "+OK\r\n"
		case "evalsha":
			return "-NOSCRIPT why\r\n"
		}
		return "*1\r\n$5\r\nother\r\n"
	})
	_, port, _ := strings.Cut(other.Addr, ":")
	for reply, asks := range map[string]int{
		"MOVED 1 " + other.Addr: 0,
		"MOVED 1 :" + port:      0, // no host means the same host
		"ASK 1 " + other.Addr:   2,
	} {
		t.Run(reply, func(t *testing.T) {
			p := fakeCluster(t, newFake(t, func([]string) string { return "-" + reply + "\r\n" }))
			before := other.count("asking")
			r, err := p.Run(t.Context(), long, Call{Script: get, Keys: []string{"k"}})
			require.NoError(t, err)
			require.Equal(t, []any{"other"}, r.Values)
			require.Equal(t, before+asks, other.count("asking"), "before EVALSHA and before EVAL")
		})
	}
}

func TestRedirectAddr(t *testing.T) {
	node := client(t, "[::2]:6379", nil)
	for redirection, want := range map[string]string{
		"1 10.0.0.1:6380": "10.0.0.1:6380",
		"1 host:6380":     "host:6380",
		"1 ::1:6380":      "[::1]:6380",
		"1 [::1]:6380":    "[::1]:6380",
		"1 :6380":         "[::2]:6380",
	} {
		require.Equal(t, want, redirectAddr(redirection, node), redirection)
	}
}

func TestInvalidRedirections(t *testing.T) {
	for _, reply := range []string{"MOVED", "MOVED 1", "MOVED 1 ", "ASK 1 nowhere", "MOVED 1 :", "ASK 1 host:"} {
		t.Run(reply, func(t *testing.T) {
			f := newFake(t, func([]string) string { return "-" + reply + "\r\n" })
			p := fakeCluster(t, f)
			_, err := p.Run(t.Context(), time.Second, Call{Script: get, Keys: []string{"k"}})
			var refusal redis.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, 1, f.count("evalsha"))
			require.Len(t, p.cluster.queues, 1, "no client for an invalid address")
		})
	}
}

func TestRetriesEndAtTheDeadline(t *testing.T) {
	f := newFake(t, func([]string) string { return "-TRYAGAIN why\r\n" })
	p := fakeCluster(t, f)
	try := func() error {
		_, err := p.Run(t.Context(), timeout, addBoth("{a}1", "{a}2"))
		return err
	}
	requireInTime(t, 20, try)
	require.Greater(t, f.count("evalsha"), 20)
	bestOf(t, 10, func() bool { return errors.Is(try(), ErrNotSent) }) // a try fails if the call is in flight at its deadline
}

// TestRepliesUnderRedirections calls two nodes that reply at random with redirections, errors or results. Some callers
// cancel their calls. Each call that succeeds must get its own reply.
func TestRepliesUnderRedirections(t *testing.T) {
	t.Parallel()
	var nodes [2]*fake
	answer := func(args []string) string {
		if args[0] == "asking" {
			return "+OK\r\n"
		}
		other := nodes[rand.IntN(2)].Addr
		switch rand.IntN(8) {
		case 0:
			return "-MOVED 1 " + other + "\r\n"
		case 1:
			return "-ASK 1 " + other + "\r\n"
		case 2:
			return "-TRYAGAIN why\r\n"
		case 3:
			return "-NOSCRIPT why\r\n"
		case 4:
			return "-OOM why\r\n"
		}
		return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(args[3]), args[3], len(args[4]), args[4])
	}
	nodes[0], nodes[1] = newFake(t, answer), newFake(t, answer)
	p := fakeCluster(t, nodes[0])
	ends := time.Now().Add(700 * time.Millisecond)
	var wg sync.WaitGroup
	var fine atomic.Int64
	for i := range 32 {
		wg.Go(func() {
			for j := 0; time.Now().Before(ends); j++ {
				ctx, cancel := context.WithCancel(t.Context())
				if j%3 == 0 {
					time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
				}
				key := fmt.Sprint("k", i)
				c := Call{Script: get, Keys: []string{key}, Args: []any{j}}
				for _, r := range p.RunAll(ctx, time.Duration(rand.IntN(20))*time.Millisecond, []Call{c, c}) {
					if r.Err == nil {
						fine.Add(1)
						if r.Values[0] != key || r.Values[1] != fmt.Sprint(j) {
							t.Errorf("%s %d: %v", key, j, r.Values)
						}
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	t.Logf("%d calls succeeded", fine.Load())
	require.Positive(t, fine.Load())
	for _, q := range p.cluster.queues {
		requireFree(t, q)
	}
}
