package redispipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(redistest.Lingers)) }

var (
	incr = NewScript(each(`redis.call('INCRBY', KEYS[key], ARGV[at])`, 1))
	fail = NewScript(each(`redis.error_reply('NO not this')`, 0))
)

// each returns a script that answers every call, of one key and so many arguments, with
// an expression.
func each(expression string, args int) string {
	return fmt.Sprintf(`
		local out = {}
		while key < #KEYS do
			key = key + 1
			out[key] = %s
			at = at + %d
		end
		return out`, expression, args)
}

// run runs a call of one key and returns its one element.
func run(ctx context.Context, p *Pipe, s *Script, key string, args ...any) (any, error) {
	reply, err := p.Run(ctx, Call{Script: s, Keys: []string{key}, Args: args, Replies: 1})
	if err != nil {
		return nil, err
	}
	return reply.Values[0], nil
}

func newPipe(t *testing.T, c redis.UniversalClient, o Options) *Pipe {
	p, err := New(c, o)
	require.NoError(t, err)
	return p
}

func TestOptionsNameWhatIsWrong(t *testing.T) {
	_, err := New(nil, Options{})
	require.ErrorContains(t, err, "no client")
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	for _, o := range []Options{{Timeout: -1}, {InFlight: -1}, {Batch: -1}} {
		_, err := New(c, o)
		require.ErrorContains(t, err, "is negative", o)
	}
}

func TestRepliesGoToTheirCallers(t *testing.T) {
	s := redistest.Start(t)
	p := newPipe(t, s.Client(nil), Options{Timeout: 5 * time.Second})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			reply, err := run(t.Context(), p, incr, fmt.Sprint("k", i), i)
			if err != nil || reply != int64(i) {
				t.Errorf("key %d: %v, %v", i, reply, err)
			}
		})
		wg.Go(func() {
			if _, err := run(t.Context(), p, fail, "any"); err == nil || err.Error() != "NO not this" {
				t.Errorf("script's own error: %v", err)
			}
		})
	}
	wg.Wait()
}

// countWrites makes a client whose connections count what they write.
func countWrites(s *redistest.Server, writes *atomic.Int64) *redis.Client {
	return s.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &countingConn{conn, writes}, err
		}
	})
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func TestManyScriptsShareARoundTrip(t *testing.T) {
	const callers, each = 64, 50
	s := redistest.Start(t)
	var writes atomic.Int64
	p := newPipe(t, countWrites(s, &writes), Options{Timeout: 5 * time.Second})
	_, err := run(t.Context(), p, incr, "n", 1) // the script is loaded
	require.NoError(t, err)
	writes.Store(0)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if _, err := run(t.Context(), p, incr, "n", 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n, err := run(t.Context(), p, incr, "n", 0)
	require.NoError(t, err)
	require.EqualValues(t, callers*each+1, n)
	require.Less(t, int(writes.Load()), callers*each/4)
	t.Logf("%d scripts in %d writes", callers*each, writes.Load())
}

func TestFlushedScriptsAreSentAgain(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(nil)
	p := newPipe(t, c, Options{Timeout: 5 * time.Second})
	endFlushes := redistest.Flushing(t, c)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				if _, err := run(t.Context(), p, incr, "n", 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	endFlushes()
	require.Equal(t, "800", c.Get(t.Context(), "n").Val())
}

func TestACallerLeavesWithItsContext(t *testing.T) {
	s := redistest.Start(t)
	p := newPipe(t, s.Client(nil), Options{Timeout: 5 * time.Second, InFlight: 1})
	_, err := run(t.Context(), p, incr, "sent", 1)
	require.NoError(t, err)

	resume := s.Pause()
	left := errors.New("left")
	sent, leaveSent := context.WithCancelCause(t.Context())
	queued, leaveQueued := context.WithCancelCause(t.Context())
	errs := make(chan error, 2)
	go func() { _, err := run(sent, p, incr, "sent", 1); errs <- err }()
	require.Eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.flying == 1 }, time.Second, time.Millisecond)
	go func() { _, err := run(queued, p, incr, "queued", 1); errs <- err }()
	require.Eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.queue) == 1 }, time.Second, time.Millisecond)
	leaveSent(left)
	leaveQueued(left)
	require.ErrorIs(t, <-errs, left)
	require.ErrorIs(t, <-errs, left)
	resume()

	n, err := run(t.Context(), p, incr, "queued", 0)
	require.NoError(t, err)
	require.EqualValues(t, 0, n, "a call whose caller left in the queue is not sent")
}

func TestADeadRedisIsNoticedInTime(t *testing.T) {
	s := redistest.Start(t)
	p := newPipe(t, s.Client(nil), Options{Timeout: 50 * time.Millisecond, InFlight: 1})
	_, err := run(t.Context(), p, incr, "n", 1)
	require.NoError(t, err)

	resume := s.Pause()
	began := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := run(t.Context(), p, incr, "n", 1); err == nil {
				t.Error("a paused Redis answered")
			}
		})
	}
	wg.Wait()
	require.Less(t, time.Since(began), time.Second)
	resume()
	require.Eventually(t, func() bool {
		_, err := run(t.Context(), p, incr, "n", 0)
		return err == nil
	}, time.Second, 10*time.Millisecond, "back within a second of Redis")

	s.Stop()
	_, err = run(t.Context(), p, incr, "n", 1)
	require.Error(t, err)
	s.Restart()
	require.Eventually(t, func() bool {
		_, err := run(t.Context(), p, incr, "n", 0)
		return err == nil
	}, time.Second, 10*time.Millisecond, "back within a second of Redis")
}

// TestALostReplyIsNotSentAgain cuts the connection after the script ran.
func TestALostReplyIsNotSentAgain(t *testing.T) {
	s := redistest.Start(t)
	var cut atomic.Bool
	c := s.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &cutConn{Conn: conn, cut: &cut}, err
		}
	})
	p := newPipe(t, c, Options{Timeout: 5 * time.Second, InFlight: 1})
	_, err := run(t.Context(), p, incr, "n", 1)
	require.NoError(t, err)

	cut.Store(true)
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range 10 {
		wg.Go(func() {
			if _, err := run(t.Context(), p, incr, "n", 1); err != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	require.Positive(t, failed.Load())
	require.Equal(t, "11", s.Client(nil).Get(t.Context(), "n").Val(), "each script ran once")
}

// cutConn loses the first reply to a script after cut was set.
type cutConn struct {
	net.Conn
	cut  *atomic.Bool
	sent atomic.Bool // a script went out
}

func (c *cutConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("evalsha")) {
		c.sent.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.sent.Load() && c.cut.CompareAndSwap(true, false) {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func BenchmarkRun(b *testing.B) {
	s := redistest.Start(b)
	c := s.Client(nil)
	plain := redis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
	p, err := New(c, Options{Timeout: 5 * time.Second})
	require.NoError(b, err)
	for _, bb := range []struct {
		name string
		run  func() error
	}{
		{"pipe", func() error { _, err := run(b.Context(), p, incr, "n", 1); return err }},
		{"go-redis", func() error { return plain.Run(b.Context(), c, []string{"n"}, 1).Err() }},
	} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", bb.name, callers), func(b *testing.B) {
				b.SetParallelism(max(1, callers/2))
				b.ReportAllocs()
				if callers == 1 {
					for b.Loop() {
						if err := bb.run(); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := bb.run(); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

// TestACallerThatLeftGetsNoReply: when its place in the queue and its context end at one
// moment, the caller may notice either first.
func TestACallerThatLeftGetsNoReply(t *testing.T) {
	p := newPipe(t, redistest.Start(t).Client(nil), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	c := &call{ctx: ctx, group: newGroup(1)}
	p.queue = []*call{c}
	cancel()
	require.Empty(t, p.wanted())
	<-c.group.done
	require.ErrorIs(t, c.err, context.Canceled)
}
