package redispipe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// refusing returns an address that refuses connections.
func refusing(t *testing.T) string {
	t.Helper()
	p, err := testhost.ReservePort()
	require.NoError(t, err)
	t.Cleanup(p.Release)
	return p.Addr()
}

// clientsOf returns a client of each kind, by name. Their only node has the address addr.
func clientsOf(t *testing.T, addr string) map[string]redis.UniversalClient {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	sentinel := newFake(t, func(args []string) string {
		switch args[1] {
		case "get-master-addr-by-name":
			return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port)
		case "sentinels":
			return "*0\r\n"
		}
		return "" // to SUBSCRIBE
	})
	clients := map[string]redis.UniversalClient{
		"single":          redis.NewClient(&redis.Options{Addr: addr}),
		"heeds deadlines": redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}),
		"sentinel":        redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{sentinel.Addr}}),
		"cluster node": redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{addr}, ClusterSlots: allAt(addr), MaxRetries: 3,
		}),
	}
	for _, c := range clients {
		t.Cleanup(func() { _ = c.Close() })
	}
	return clients
}

// failAll makes calls from 500 goroutines at once, each with Run and with RunAll. They must fail with the error want
// and not with never.
func failAll(t *testing.T, p *Pipe, timeout time.Duration, want, never error) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			errs := []error{run(t.Context(), p, timeout, fmt.Sprint("k", i), 1)}
			for _, r := range p.RunAll(t.Context(), timeout, []Call{add("a", 1), of(&counters, "b", 1)}) {
				errs = append(errs, r.Err)
			}
			for _, err := range errs {
				if !errors.Is(err, want) || errors.Is(err, never) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestRefusedConnectionFailsAtOnce(t *testing.T) {
	clients := clientsOf(t, refusing(t))
	clients["sentinels"] = redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{refusing(t), refusing(t)}, MaxRetries: -1, DialerRetries: 1,
	})
	defer clients["sentinels"].Close()
	clients["cluster"] = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{refusing(t), refusing(t), refusing(t)}})
	defer clients["cluster"].Close()
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, c)
			began := time.Now()
			failAll(t, p, long, ErrNotSent, ErrNoReply)
			require.Less(t, time.Since(began), long/4, "long before the deadline")
			const want = `(?s)^redis \S+: not sent: .*connect: connection refused$`
			require.Regexp(t, want, run(t.Context(), p, long, "n", 1).Error())
			require.Regexp(t, want, p.RunAll(t.Context(), long, []Call{add("n", 1)})[0].Err.Error())
			require.Less(t, c.PoolStats().TotalConns, uint32(3), "failed connections leave the pool")
		})
	}
}

// TestRecoveryAfterRefusedConnections makes more calls with failed dials than the pool has places.
func TestRecoveryAfterRefusedConnections(t *testing.T) {
	s := testhost.StartRedis(t)
	c := s.Client(func(o *redis.Options) { o.MinIdleConns = 3 })
	p := newPipe(t, c)
	load(t, p, incr)
	for range 3 {
		s.Stop()
		for range 3 * c.Options().PoolSize {
			require.Error(t, run(t.Context(), p, long, "n", 1))
		}
		s.Restart()
		require.NoError(t, run(t.Context(), p, long, "n", 1), "the next call succeeds")
	}
}

// TestRetriesOfTheApplication checks that the client still repeats the application's own commands after a failed dial.
func TestRetriesOfTheApplication(t *testing.T) {
	var tries atomic.Int64
	s := testhost.StartRedis(t)
	c := s.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if tries.Add(1) <= 2 {
				return nil, &net.OpError{Op: "dial", Err: errors.New("down")}
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	newPipe(t, c)
	require.NoError(t, c.Ping(t.Context()).Err())
	require.EqualValues(t, 3, tries.Load())
}

// TestNothingIsSentBeforeTheHandshake calls servers that accept connections, but with which the handshake fails.
func TestNothingIsSentBeforeTheHandshake(t *testing.T) {
	closing := listen(t, func(net.Conn) {})
	for name, c := range clientsOf(t, closing) {
		t.Run("closes at once, "+name, func(t *testing.T) {
			began := time.Now()
			failAll(t, newPipe(t, c), long, ErrNotSent, ErrNoReply)
			require.Less(t, time.Since(began), long/2)
		})
	}
	for name, c := range clientsOf(t, silent(t)) {
		t.Run("never answers, "+name, func(t *testing.T) {
			p := newPipe(t, c)
			failAll(t, p, timeout, ErrNotSent, ErrNoReply)
			requireInTime(t, 1, func() error { return run(t.Context(), p, timeout, "n", 1) })
		})
	}
	other := listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	for name, c := range clientsOf(t, other) {
		t.Run("is no Redis, "+name, func(t *testing.T) {
			failAll(t, newPipe(t, c), long, ErrNotSent, ErrNoReply)
		})
	}
}

// TestHandshakeRefused calls a server that refuses the login.
func TestHandshakeRefused(t *testing.T) {
	refuses := newFake(t, func(args []string) string {
		return "-WRONGPASS invalid password, with args beginning with: 'secret'\r\n"
	})
	c := client(t, refuses.Addr, func(o *redis.Options) { o.Password = "secret" })
	p := newPipe(t, c)
	failAll(t, p, long, ErrNotSent, ErrNoReply)
	f := Failures{Store: errors.New("store"), Prefix: "app:"}
	err := f.Wrap(t.Context(), run(t.Context(), p, long, "n", 1))
	require.ErrorIs(t, err, ErrNotSent)
	require.EqualError(t, err, "store: redis "+refuses.Addr+": not sent: WRONGPASS invalid password")
	require.NotContains(t, refuses.seen, "evalsha")

	// Hooks for tracing read the arguments of a command before the handshake.
	c = client(t, refuses.Addr, func(o *redis.Options) { o.Password, o.ContextTimeoutEnabled = "secret", true })
	c.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
		for _, cmd := range cmds {
			cmd.Args()
		}
		return send()
	}))
	for _, r := range newPipe(t, c).RunAll(t.Context(), long, []Call{add("a", 1), of(&counters, "b", 1)}) {
		require.ErrorContains(t, r.Err, "redis "+refuses.Addr+": WRONGPASS invalid password")
		require.NotErrorIs(t, r.Err, ErrNoReply)
	}
}

// TestNothingIsSentWithoutAConnection checks the errors of calls that wait for a connection until their deadline.
func TestNothingIsSentWithoutAConnection(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	hanging := client(t, "nowhere:1", func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			<-end
			return nil, errors.New("the end")
		}
	})
	closing := listen(t, func(net.Conn) {})
	noTLS := client(t, closing, func(o *redis.Options) { o.TLSConfig = &tls.Config{InsecureSkipVerify: true} })
	sentinel := redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: []string{silent(t)}, ReadTimeout: timeout / 4})
	defer sentinel.Close()
	refuses := newFake(t, func([]string) string { return "-NOAUTH why\r\n" })
	noLogin := redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: []string{refuses.Addr}})
	defer noLogin.Close()
	busy := client(t, silent(t), func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize, o.MaxActiveConns = 1, -1, 1 })
	go func() { _ = busy.Ping(context.Background()).Err() }()
	eventually(t, "the only connection is in use", func() bool { return busy.PoolStats().TotalConns == 1 })
	for name, c := range map[string]*redis.Client{
		"dial hangs": hanging, "TLS fails": noTLS, "pool exhausted": busy, "Sentinel hangs": sentinel, "Sentinel refuses": noLogin,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, c)
			failAll(t, p, timeout, ErrNotSent, ErrNoReply)
			for _, callers := range []int{1, 100} {
				requireInTime(t, callers, func() error { return run(t.Context(), p, timeout, "n", 1) })
			}
		})
	}
}

// TestAbandonedCallIsNotSentLater lets some calls of a round trip miss their deadline during the dial. Only the other calls
// are sent.
func TestAbandonedCallIsNotSentLater(t *testing.T) {
	s := testhost.StartRedis(t)
	dial := make(chan struct{})
	c := s.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			<-dial
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	p := newPipe(t, c)
	calls := map[time.Duration][]*call{}
	for _, t := range []time.Duration{timeout, long} {
		for _, key := range []string{"first", "n", "n"} {
			if t == timeout || key == "n" {
				for _, what := range []Call{add(key, 1), of(&counters, "b"+key, 1)} {
					calls[t] = append(calls[t], newCall(context.Background(), time.Now().Add(t), what))
				}
			}
		}
	}
	q := p.single
	for _, c := range append(calls[timeout], calls[long]...) {
		c.first = q
	}
	go q.run(q.add(append(calls[timeout], calls[long]...)...))
	for _, c := range calls[timeout] {
		c.wait()
		_, err := c.result()
		require.ErrorIs(t, err, ErrNotSent)
		require.NotErrorIs(t, err, ErrNoReply)
	}
	close(dial)
	for _, c := range calls[long] {
		c.wait()
		_, err := c.result()
		require.NoError(t, err)
	}
	for key, want := range map[string]int{"first": 0, "bfirst": 0, "n": 2, "bn": 2} {
		require.Equal(t, want, value(t, c, key), key)
	}
	requireIdle(t, p)
}
