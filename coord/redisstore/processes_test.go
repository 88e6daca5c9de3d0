package redisstore_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// connect returns a store with a client of its own, as a process has.
func connect(t *testing.T, addr string) *redisstore.Store {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return newStore(t, c, patient)
}

// uses makes n concurrent uses of a token. It returns the number of those that succeeded.
func uses(t *testing.T, tokens *coord.Tokens, id string, n int) int {
	var used atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range n {
		wg.Go(func() {
			<-start
			switch _, err := tokens.Use(t.Context(), id, "one"); {
			case err == nil:
				used.Add(1)
			case !errors.Is(err, coord.ErrUsed):
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(used.Load())
}

// TestFourProcessesUseATokenOnce checks that one of fifty goroutines in four processes can use a token, for a
// thousand tokens.
func TestFourProcessesUseATokenOnce(t *testing.T) {
	testhost.ServeProcess(t, func(addr string, in io.Reader, out io.Writer) {
		tokens := newTokens(t, connect(t, addr))
		for lines := bufio.NewScanner(in); lines.Scan(); {
			fmt.Fprintln(out, uses(t, tokens, lines.Text(), 12))
		}
	})
	server := testhost.StartRedis(t)
	tokens := newTokens(t, connect(t, server.Addr))
	var others []*testhost.Process
	var answers []*bufio.Scanner
	for range 3 {
		p := testhost.StartProcess(t, server.Addr)
		others, answers = append(others, p), append(answers, bufio.NewScanner(p.Out))
	}
	winners := make(map[int]int)
	for range 1000 {
		id := coord.NewID()
		require.NoError(t, tokens.Issue(t.Context(), id, nil, time.Minute))
		for _, p := range others {
			fmt.Fprintln(p.In, id)
		}
		total := uses(t, tokens, id, 50-3*12)
		winners[0] += total
		for i, a := range answers {
			require.True(t, a.Scan())
			n := must(strconv.Atoi(a.Text()))
			winners[i+1] += n
			total += n
		}
		require.Equal(t, 1, total)
	}
	for _, p := range others {
		p.End(t)
	}
	t.Logf("tokens used by each process: %v", winners)
	require.Greater(t, len(winners), 1)
}
