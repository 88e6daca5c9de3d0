package redispipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// dialMemory is how long a failed dial explains errors.
const dialMemory = 10 * time.Second

// dials is a hook of a client. It lets calls fail as soon as a dial fails, and remembers why the last dial failed. A
// dial can take longer than a call's deadline, for example if it asks Sentinels.
type dials struct{ last atomic.Pointer[dialFailure] }

type dialFailure struct {
	err error
	at  time.Time
}

// dialsOf returns the hook of a client. It adds the hook only once.
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

// failure returns the error of the last dial, or nil if it succeeded or is too long ago.
func (d *dials) failure() error {
	if f := d.last.Load(); f != nil && time.Since(f.at) < dialMemory {
		return f.err
	}
	return nil
}

// DialHook implements [redis.Hook]. After a failed dial, go-redis would keep dialling in the background for longer than
// most deadlines, and keep a place of the pool. DialHook prevents this: it returns a connection that fails.
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
		end, _ := net.Pipe()
		return failedConn{end, failure}, nil
	}
}

// ProcessHook implements [redis.Hook]. The first command on a new connection is HELLO. go-redis would repeat it if it
// got no reply.
func (*dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" {
			cmd = &command{Cmder: cmd, args: cmd.Args()}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (*dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// failedConn is the connection that go-redis gets from a failed dial. Nothing can be sent on it: the handshake, which
// comes first, fails with the dial's error.
type failedConn struct {
	net.Conn // the end of a pipe, for the other methods
	err      *dialError
}

func (c failedConn) Read([]byte) (int, error) { return 0, c.err }

// Write returns a wrapped error, because go-redis unwraps errors of the handshake once.
func (c failedConn) Write([]byte) (int, error) { return 0, fmt.Errorf("%w", c.err) }

// SyscallConn makes go-redis discard the connection from the pool: go-redis checks an idle connection by its
// descriptor.
func (c failedConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }

// dialError is the error of a failed dial. It never counts as a reply of Redis, even if a Sentinel replied with it.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }

// Unwrap returns the error only if it comes from the network. Then go-redis retries the commands of the application.
func (e *dialError) Unwrap() error {
	if op, ok := e.err.(*net.OpError); ok {
		return op
	}
	return nil
}

// cause returns the error without the address.
func (e *dialError) cause() error {
	if op, ok := e.err.(*net.OpError); ok && op.Op == "dial" {
		return op.Err
	}
	return errors.New(e.err.Error())
}
