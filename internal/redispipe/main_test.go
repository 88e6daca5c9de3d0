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
	// incr adds to a key and returns the sum.
	incr = NewScript(`return {redis.call('INCRBY', KEYS[1], ARGV[1])}`)
	// get returns the value of a key.
	get = NewScript(`return {redis.call('GET', KEYS[1]) or '0'}`)
	// fails raises an error.
	fails = NewScript(`return redis.error_reply('NO not this')`)
)

// long is a timeout that no test reaches.
const long = 10 * time.Second

func newPipe(tb testing.TB, client redis.UniversalClient) *Pipe {
	tb.Helper()
	p, err := open(client)
	require.NoError(tb, err)
	return p
}

func add(key string, n int) Call { return Call{Script: incr, Keys: []string{key}, Args: []any{n}} }

// run adds n to a key.
func run(ctx context.Context, p *Pipe, timeout time.Duration, key string, n int) error {
	_, err := p.Run(ctx, timeout, add(key, n))
	return err
}

// load makes Redis load the scripts.
func load(tb testing.TB, p *Pipe, scripts ...*Script) {
	tb.Helper()
	for _, s := range scripts {
		_, err := p.Run(tb.Context(), long, Call{Script: s, Keys: []string{"unused"}, Args: []any{0}})
		require.NoError(tb, err)
	}
}

// value returns the number in a key, or 0 if there is no such key.
func value(tb testing.TB, c redis.UniversalClient, key string) int {
	tb.Helper()
	n, err := c.Get(tb.Context(), key).Int()
	if err != redis.Nil {
		require.NoError(tb, err)
	}
	return n
}

// inTime reports whether a call that began at that time has returned at most 50 ms after its timeout.
func inTime(began time.Time, timeout time.Duration) bool {
	return time.Since(began) < timeout+50*time.Millisecond
}

// bestOf calls try until it succeeds, since a busy machine can spoil a try.
func bestOf(t *testing.T, tries int, try func() bool) {
	t.Helper()
	for range tries {
		if try() {
			return
		}
	}
	t.Errorf("%d tries failed", tries)
}

// hook wraps the round trips that contain scripts. It ignores handshakes.
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

// gate holds round trips back until the test lets them pass.
type gate struct {
	began chan int      // receives the number of commands when a round trip begins
	pass  chan struct{} // lets one round trip pass for each element
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

// farAway makes p believe that its round trips are long, so that calls do not wait for each other.
func farAway(p *Pipe) {
	p.single.mu.Lock()
	defer p.single.mu.Unlock()
	p.single.rtt = time.Hour
}

// fill begins as many round trips as may be in flight, with one call each.
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

// receive returns the next element of a channel.
func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(long):
		t.Fatal("nothing was sent")
	}
	return v
}

// nothing fails the test if the channel has an element.
func nothing[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%v was sent", v)
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
	seen []string // the names of commands, without those of handshakes
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
			case "ping": // go-redis checks subscriptions that are idle
				reply = "+PONG\r\n"
			case "time": // instead of calls that were abandoned
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

// count returns how often the server has received a command.
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

// listen calls serve for each connection until the test ends. It returns the listener's address.
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

// silent returns the address of a server that accepts connections and never replies.
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
		return 0, fmt.Errorf("invalid command: %q", line)
	}
	return n, nil
}

// client returns a client for the server at an address.
func client(tb testing.TB, addr string, change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}
