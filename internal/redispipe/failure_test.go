package redispipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestLostReplyIsNotSentAgain cuts the connection after the scripts have run.
func TestLostReplyIsNotSentAgain(t *testing.T) {
	s := testhost.StartRedis(t)
	var cut atomic.Bool
	p := newPipe(t, s.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &cutConn{Conn: conn, cut: &cut}, err
		}
	}))
	load(t, p, incr)
	loadBatch(t, p, &counters)

	cut.Store(true)
	err := run(t.Context(), p, long, "n", 1)
	require.ErrorIs(t, err, ErrNoReply)
	require.NotErrorIs(t, err, ErrNotSent)
	require.Equal(t, 1, value(t, s.Client(nil), "n"))

	cut.Store(true)
	for _, r := range p.RunAll(t.Context(), long, []Call{add("n", 1), of(&counters, "m", 1), add("n", 1), of(&counters, "m", 1)}) {
		require.ErrorIs(t, r.Err, ErrNoReply)
	}
	require.Equal(t, 3, value(t, s.Client(nil), "n"))
	require.Equal(t, 2, value(t, s.Client(nil), "m"))
	requireIdle(t, p)
}

// cutConn is a connection that loses the next reply to a script if cut is set.
type cutConn struct {
	net.Conn
	cut  *atomic.Bool
	sent atomic.Bool // a script was written
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

func TestFlushedScriptsAreLoadedAgain(t *testing.T) {
	s := testhost.StartRedis(t)
	c := s.Client(nil)
	p := newPipe(t, c)
	endFlushes := testhost.KeepFlushingScripts(t, c)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 30 {
				err := run(t.Context(), p, long, "n", 1)
				if i%2 == 0 {
					_, err = p.Run(t.Context(), long, of(&counters, "m", 1))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	endFlushes()
	require.Equal(t, 16*30, value(t, c, "n"))
	require.Equal(t, 8*30, value(t, c, "m"))
}

// TestErrorRepliesGoToTheirCalls calls a server that replies with an error named by the key, or with success.
func TestErrorRepliesGoToTheirCalls(t *testing.T) {
	f := newFake(t, func(args []string) string {
		if args[3] == "fine" {
			return "*1\r\n:1\r\n"
		}
		return "-" + args[3] + " why\r\n"
	})
	p := newPipe(t, client(t, f.Addr, nil))
	kinds := []string{"LOADING", "fine", "OOM", "READONLY", "fine", "MOVED", "ASK", "TRYAGAIN", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "NOAUTH", "fine"}
	var calls []Call
	for _, kind := range kinds {
		calls = append(calls, Call{Script: get, Keys: []string{kind}})
	}
	for i, r := range p.RunAll(t.Context(), long, calls) {
		requireKind(t, kinds[i], r)
		reply, err := p.Run(t.Context(), long, calls[i])
		requireKind(t, kinds[i], Result{reply, err})
	}
	require.Equal(t, 2*len(kinds), f.count("evalsha"), "nothing is sent again")
}

// TestUnreadableReplyIsNotSentAgain checks that a call whose script has run does not get the error of another call, which
// would send it again.
func TestUnreadableReplyIsNotSentAgain(t *testing.T) {
	f := newFake(t, func(args []string) string {
		switch {
		case args[3] == "number":
			return ":1\r\n"
		case args[0] == "evalsha":
			return "-NOSCRIPT why\r\n"
		}
		return "*1\r\n:1\r\n"
	})
	p := newPipe(t, client(t, f.Addr, nil))
	calls := []Call{{Script: get, Keys: []string{"unknown"}}, {Script: get, Keys: []string{"number"}}}
	results := p.RunAll(t.Context(), long, calls)
	require.NoError(t, results[0].Err)
	require.ErrorIs(t, results[1].Err, ErrUnreadable)
	require.Equal(t, 2, f.count("evalsha"))
	require.Equal(t, 1, f.count("eval"))
}

func requireKind(t *testing.T, kind string, r Result) {
	t.Helper()
	if kind == "fine" {
		require.NoError(t, r.Err)
		require.Equal(t, []any{int64(1)}, r.Values)
		return
	}
	var reply redis.Error
	require.ErrorAs(t, r.Err, &reply)
	require.Equal(t, kind+" why", reply.Error())
	require.NotErrorIs(t, r.Err, ErrNotSent)
	require.NotErrorIs(t, r.Err, ErrNoReply)
}

// TestInvalidReplies checks that the error for an unreadable reply does not quote the reply. The stores redact error replies.
func TestInvalidReplies(t *testing.T) {
	t.Parallel()
	replies := testhost.QuotingReplies("app:secret-of-key", "secret-of")
	for name, reply := range map[string]string{
		"array of errors":   "*2\r\n-secret-of\r\n-OOM secret-of\r\n",
		"array of text":     "*2\r\n$9\r\nsecret-of\r\n$9\r\nsecret-of\r\n",
		"negative length":   "*-7\r\n",
		"large length":      "*9223372036854775807\r\n",
		"no end of line":    "+secret-of\n\n",
		"nested":            "*1\r\n*1\r\n*1\r\n+secret-of\r\n",
		"nothing":           "\r\n",
		"map":               "%1\r\n+secret-of\r\n+x\r\n",
		"bool":              "#secret-of\r\n",
		"float":             ",secret-of\r\n",
		"big":               "(secret-of\r\n",
		"verbatim":          "=9\r\nsecret-of\r\n",
		"text for a number": "*1\r\n$9\r\nsecret-of\r\n",
	} {
		replies[name] = reply
	}
	ints := NewIntScript(`return {1}`)
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, testhost.FixedReplyClient(t, reply))
			calls := []Call{{Script: get, Keys: []string{"k"}}, {Script: ints, Keys: []string{"k"}}, of(&counters, "k", 1)}
			var results []Result
			for _, c := range calls {
				began := time.Now()
				reply, err := p.Run(t.Context(), timeout, c)
				require.Less(t, time.Since(began), long/2)
				results = append(results, Result{reply, err})
			}
			results = append(results, p.RunAll(t.Context(), timeout, calls)...)
			for _, r := range results {
				var reply redis.Error
				if r.Err != nil && !errors.As(r.Err, &reply) {
					require.NotContains(t, r.Err.Error(), "secret-of")
				}
				if r.Err == nil {
					require.False(t, r.Values == nil && r.Ints == nil)
				}
			}
			requireIdle(t, p)
		})
	}
}

// TestPanickingHook uses a hook that panics before the commands are sent, or afterwards.
func TestPanickingHook(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	load(t, p, incr)
	var before, after atomic.Bool
	p.single.client.AddHook(hook(func(_ []redis.Cmder, send func() error) error {
		if before.Load() {
			panic("before")
		}
		err := send()
		if after.Load() {
			panic("after")
		}
		return err
	}))
	for range 2 * maxInFlight {
		before.Store(true)
		require.ErrorContains(t, run(t.Context(), p, long, "n", 1), "before")
		for _, r := range p.RunAll(t.Context(), long, []Call{add("n", 1), of(&counters, "m", 1), of(&counters, "m", 1)}) {
			require.ErrorContains(t, r.Err, "before")
		}
		before.Store(false)
		require.NoError(t, run(t.Context(), p, long, "n", 1))
		after.Store(true)
		err := run(t.Context(), p, long, "n", 1)
		require.ErrorContains(t, err, "after")
		require.ErrorIs(t, err, ErrNoReply, "the script may have run")
		after.Store(false)
	}
	requireIdle(t, p)
	require.Equal(t, 4*maxInFlight, value(t, s.Client(nil), "n"))
}

// TestHooksOfTheClient checks that the client's hooks see the calls if ContextTimeoutEnabled is set, and that the
// calls' deadlines also hold if the client has its own timeouts.
func TestHooksOfTheClient(t *testing.T) {
	s := testhost.StartRedis(t)
	for _, enabled := range []bool{true, false} {
		c := s.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = enabled })
		var seen atomic.Int64
		c.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
			seen.Add(int64(len(cmds)))
			return send()
		}))
		p := newPipe(t, c)
		load(t, p, incr)
		seen.Store(0)
		require.NoError(t, run(t.Context(), p, long, "n", 1))
		together(t, p, add("n", 1), add("n", 1))
		require.Equal(t, enabled, seen.Load() == 3)
		require.Equal(t, enabled, seen.Load() != 0)

		resume := s.Pause()
		requireInTime(t, 1, func() error { return run(t.Context(), p, timeout, "n", 1) })
		requireInTime(t, 100, func() error { return run(t.Context(), p, timeout, "n", 1) })
		resume()
	}
}

// TestFailingHook uses a hook that returns an error, sends nothing, and does not set the errors of the commands.
func TestFailingHook(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	refused := errors.New("refused")
	p.single.client.AddHook(hook(func([]redis.Cmder, func() error) error { return refused }))
	calls := []Call{add("n", 1), {Script: NewIntScript(`return {1}`), Keys: []string{"n"}}, of(&counters, "n", 1)}
	for i, r := range p.RunAll(t.Context(), long, calls) {
		require.ErrorIs(t, r.Err, refused)
		_, err := p.Run(t.Context(), long, calls[i])
		require.ErrorIs(t, err, refused)
	}
	requireIdle(t, p)
}

// TestCallError checks which failures are ErrNotSent and which are ErrNoReply.
func TestCallError(t *testing.T) {
	late := os.ErrDeadlineExceeded
	for _, test := range []struct{ reason, ifQueued, ifSent error }{
		{&dialError{&net.OpError{Op: "dial", Err: late}}, ErrNotSent, ErrNotSent},
		{fmt.Errorf("wrapped: %w", &dialError{io.EOF}), ErrNotSent, ErrNotSent},
		{&dialError{redacted("NOAUTH of a Sentinel")}, ErrNotSent, ErrNotSent},
		{context.DeadlineExceeded, ErrNotSent, ErrNoReply},
		{redis.ErrPoolTimeout, ErrNotSent, ErrNoReply},
		{redis.ErrClosed, ErrNotSent, ErrNoReply},
		{&net.OpError{Op: "read", Err: late}, ErrNotSent, ErrNoReply},
		{&net.OpError{Op: "write", Err: late}, ErrNotSent, ErrNoReply},
		{&net.OpError{Op: "read", Err: io.EOF}, ErrNotSent, ErrNoReply},
		{io.EOF, ErrNotSent, ErrNoReply},
		{errors.New("something"), ErrNotSent, ErrNoReply},
		{errors.New("redis: can't parse secret"), ErrNotSent, ErrUnreadable},
		{ErrUnreadable, ErrNotSent, ErrUnreadable},
	} {
		q := newQueue(new(Pipe), client(t, "127.0.0.1:1", nil))
		for state, want := range map[int32]error{queued: test.ifQueued, sent: test.ifSent} {
			got := q.callError(state, test.reason)
			require.ErrorIs(t, got, want)
			for _, err := range []error{ErrNotSent, ErrNoReply} {
				require.Equal(t, errors.Is(want, err), errors.Is(got, err), "%v: %v", test.reason, got)
			}
			require.NotContains(t, got.Error(), "secret")
			require.NotErrorAs(t, got, new(redis.Error), "no reply of Redis")
		}
	}
}

// TestRepliesUnderConnectionFaults makes calls while connections break and scripts are flushed. No call gets the reply of
// another call, no script runs twice, and each script whose call succeeded has run.
func TestRepliesUnderConnectionFaults(t *testing.T) {
	t.Parallel()
	s := testhost.StartRedis(t)
	c, proxy := faultproxy.NewClient(t, s)
	p := newPipe(t, c)
	load(t, p, incr)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
			switch i % 4 {
			case 0:
				proxy.ResetAfter(200)
			case 1:
				c.ScriptFlush(t.Context())
			case 2:
				proxy.Stall()
			case 3:
				_ = proxy.Restore()
			}
		}
	}()
	ends := time.Now().Add(700 * time.Millisecond)
	echo := NewScript(`return {KEYS[1], ARGV[1]}`)
	var wg sync.WaitGroup
	var fine, lost atomic.Int64
	for i := range 64 {
		wg.Go(func() {
			for j := 0; time.Now().Before(ends); j++ {
				key, ctx := fmt.Sprint("k", i), t.Context()
				cancel := context.CancelFunc(func() {})
				if j%3 == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(j%7)*time.Millisecond)
				}
				r, err := p.Run(ctx, 20*time.Millisecond, Call{Script: echo, Keys: []string{key}, Args: []any{j}})
				if err == nil && (r.Values[0] != key || r.Values[1] != fmt.Sprint(j)) {
					t.Errorf("%s %d: %v", key, j, r.Values)
				}
				b, err := p.Run(ctx, 20*time.Millisecond, Call{Batch: &keyed, Key: key, N: int64(j)})
				if err == nil && (b.Ints[0] != int64(i) || b.Ints[1] != int64(j)) {
					t.Errorf("%s %d: %v", key, j, b.Ints)
				}
				cancel()
				switch err := run(t.Context(), p, 20*time.Millisecond, "n", 1); {
				case err == nil:
					fine.Add(1)
				case errors.Is(err, ErrNoReply):
					lost.Add(1)
				case !errors.Is(err, ErrNotSent):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-stopped
	require.NoError(t, proxy.Restore())
	n := int64(value(t, s.Client(nil), "n"))
	t.Logf("%d calls succeeded, %d lost their replies, %d scripts ran", fine.Load(), lost.Load(), n)
	require.Positive(t, fine.Load())
	require.Positive(t, lost.Load())
	require.GreaterOrEqual(t, n, fine.Load())
	require.LessOrEqual(t, n, fine.Load()+lost.Load())
	eventually(t, "it works again", func() bool { return run(t.Context(), p, timeout, "n", 1) == nil })
	requireIdle(t, p)
}

// keyed is a Batch that returns the number in each key, and N.
var keyed = Batch{
	Script: NewIntScript(`
		local out = {0}
		for i, key in ipairs(KEYS) do
			out[2 * i], out[2 * i + 1] = string.sub(key, 2) + 0, (ARGV[2 * i - 1] or 1) + 0
		end
		return out`),
	Width: 2, Max: 100, Join: true,
}
