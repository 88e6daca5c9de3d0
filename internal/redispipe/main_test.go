package redispipe

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // parallel tests wait for Redis, not for a processor
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}

var (
	// incr adds to a key, and returns what it holds then.
	incr = NewScript(`return {redis.call('INCRBY', KEYS[1], ARGV[1])}`)
	// get returns what a key holds.
	get = NewScript(`return {redis.call('GET', KEYS[1]) or '0'}`)
	// fails raises an error.
	fails = NewScript(`return redis.error_reply('NO not this')`)
)

const long = 10 * time.Second // more than anything takes

func newPipe(tb testing.TB, client redis.UniversalClient) *Pipe {
	tb.Helper()
	p, err := open(client)
	require.NoError(tb, err)
	return p
}

func add(key string, n int) Call { return Call{Script: incr, Keys: []string{key}, Args: []any{n}} }

// run adds to a key.
func run(ctx context.Context, p *Pipe, timeout time.Duration, key string, n int) error {
	_, err := p.Run(ctx, timeout, add(key, n))
	return err
}

// load makes Redis know the scripts.
func load(tb testing.TB, p *Pipe, scripts ...*Script) {
	tb.Helper()
	for _, s := range scripts {
		_, err := p.Run(tb.Context(), long, Call{Script: s, Keys: []string{"unused"}, Args: []any{0}})
		require.NoError(tb, err)
	}
}

// value returns what a key holds.
func value(tb testing.TB, c redis.UniversalClient, key string) int {
	tb.Helper()
	n, err := c.Get(tb.Context(), key).Int()
	if err != redis.Nil {
		require.NoError(tb, err)
	}
	return n
}

// inTime reports whether a call that was made then has returned in time.
func inTime(began time.Time, timeout time.Duration) bool {
	return time.Since(began) < timeout+50*time.Millisecond
}

// bestOf calls try, which reports whether it went well, until it does. On a busy machine not each
// try has a chance.
func bestOf(t *testing.T, tries int, try func() bool) {
	t.Helper()
	for range tries {
		if try() {
			return
		}
	}
	t.Errorf("not once in %d tries", tries)
}

// hook is around the round trips of scripts. Connections' handshakes don't count.
type hook func(cmds []redis.Cmder, send func() error) error

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		return h([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || !strings.HasPrefix(cmds[len(cmds)-1].Name(), "eval") {
			return next(ctx, cmds)
		}
		return h(cmds, func() error { return next(ctx, cmds) })
	}
}

// gate holds round trips back.
type gate struct {
	began chan int      // has the number of a round trip's commands once it has begun
	pass  chan struct{} // lets one go on
}

func newGate(t *testing.T, p *Pipe) *gate {
	farAway(p)
	g := &gate{began: make(chan int, 1000), pass: make(chan struct{})}
	t.Cleanup(func() { close(g.pass) })
	p.single.client.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
		g.began <- len(cmds)
		<-g.pass
		return send()
	}))
	return g
}

// farAway lets round trips begin side by side, as over a network.
func farAway(p *Pipe) {
	p.single.mu.Lock()
	defer p.single.mu.Unlock()
	p.single.rtt = time.Hour
}

// fill has all round trips of a client for one server begin, with a call each. They end when the
// gate lets them.
func (g *gate) fill(t *testing.T, p *Pipe) (ended *sync.WaitGroup) {
	t.Helper()
	ended = new(sync.WaitGroup)
	for range maxInFlight {
		ended.Go(func() {
			if err := run(t.Context(), p, long, "held", 1); err != nil {
				t.Error(err)
			}
		})
		require.Equal(t, 1, receive(t, g.began))
	}
	return ended
}

// receive returns what comes from a channel.
func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(long):
		t.Fatal("nothing comes")
	}
	return v
}

// nothing fails the test if something comes from a channel.
func nothing[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("there came %v", v)
	case <-time.After(30 * time.Millisecond):
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, long, time.Millisecond, what)
}

// fake is a server that replies to each command with the result of a function. An empty result means no reply.
type fake struct {
	Addr string

	mu   sync.Mutex
	seen []string // commands, but for those of handshakes
}

func newFake(tb testing.TB, answer func(args []string) string) *fake {
	tb.Helper()
	f := new(fake)
	f.Addr = listen(tb, func(conn net.Conn) {
		for r := bufio.NewReader(conn); ; {
			args, err := readCommand(r)
			if err != nil {
				return
			}
			reply := "-ERR unknown command\r\n"
			switch args[0] {
			case "hello", "client":
			case "time": // in place of calls that were abandoned
				reply = "*2\r\n$1\r\n1\r\n$1\r\n1\r\n"
			default:
				f.mu.Lock()
				f.seen = append(f.seen, args[0])
				f.mu.Unlock()
				reply = answer(args)
			}
			if _, err := io.WriteString(conn, reply); err != nil {
				return
			}
		}
	})
	return f
}

// count returns how often a command came.
func (f *fake) count(command string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.seen {
		if c == command {
			n++
		}
	}
	return n
}

// listen serves connections until the test ends, and returns the address.
func listen(tb testing.TB, serve func(net.Conn)) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var mu sync.Mutex
	var conns []net.Conn
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			served.Go(func() { serve(conn); _ = conn.Close() })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		served.Wait()
	})
	return l.Addr().String()
}

// silent returns the address of a server that accepts connections and never answers.
func silent(tb testing.TB) string {
	return listen(tb, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
}

func readCommand(r *bufio.Reader) (args []string, err error) {
	n, err := readLen(r)
	if err != nil {
		return nil, err
	}
	for range n {
		size, err := readLen(r)
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args = append(args, string(b[:size]))
	}
	return args, nil
}

func readLen(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil {
		return 0, fmt.Errorf("no command: %q", line)
	}
	return n, nil
}

// client returns a client of an address.
func client(tb testing.TB, addr string, change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}
