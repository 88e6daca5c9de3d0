package redispipe

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

const (
	// dialMemory is how long a failure to dial explains errors.
	dialMemory = 10 * time.Second
	// sentinelAddr is the Addr of go-redis's clients that ask Sentinels for the address.
	sentinelAddr = "FailoverClient"
)

// dials is a hook of a client that has calls fail as soon as a dial fails. It also keeps why the last
// one failed: a dial that takes longer than a call's deadline, such as one that asks Sentinels, fails
// when the call is over.
type dials struct{ last atomic.Pointer[dialFailure] }

type dialFailure struct {
	err error
	at  time.Time
}

// dialsOf returns the hook of a client, and the same one each time.
func dialsOf(client *redis.Client) *dials {
	dialsMu.Lock()
	defer dialsMu.Unlock()
	key := weak.Make(client)
	d := allDials[key]
	if d == nil {
		d = new(dials)
		client.AddHook(d)
		allDials[key] = d
		runtime.AddCleanup(client, forgetDials, key)
	}
	return d
}

var (
	dialsMu  sync.Mutex
	allDials = map[weak.Pointer[redis.Client]]*dials{}
)

func forgetDials(key weak.Pointer[redis.Client]) {
	dialsMu.Lock()
	defer dialsMu.Unlock()
	delete(allDials, key)
}

// failure returns why the last attempt to dial failed, or nil if it did not, or long ago.
func (d *dials) failure() error {
	if f := d.last.Load(); f != nil && time.Since(f.at) < dialMemory {
		return f.err
	}
	return nil
}

// DialHook implements [redis.Hook]. go-redis would repeat a dial that failed in the background, for
// longer than most deadlines, and hold a place of the pool for it. So it gets a connection that
// fails.
func (d *dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			d.last.Store(nil)
			return conn, nil
		}
		if errors.Is(ctx.Err(), context.Canceled) { // its caller has left
			return nil, err
		}
		failure := &dialError{err}
		d.last.Store(&dialFailure{failure.cause(), time.Now()})
		return newFailedConn(failure), nil
	}
}

// ProcessHook implements [redis.Hook]. The first command on a new connection is HELLO, which go-redis
// would repeat if it got no reply.
func (*dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" {
			cmd = once{cmd}
		}
		return next(ctx, cmd)
	}
}

// once is a command that go-redis does not repeat on the same connection.
type once struct{ redis.Cmder }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// ProcessPipelineHook implements [redis.Hook].
func (*dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
