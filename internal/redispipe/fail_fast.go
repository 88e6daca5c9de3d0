package redispipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"weak"

	"github.com/redis/go-redis/v9"
)

// failFast is a hook of a client. It makes calls fail as soon as a dial or a handshake fails.
type failFast struct{}

// addFailFast adds the hook to a client, unless the client has it already.
func addFailFast(client *redis.Client) {
	hookedMu.Lock()
	defer hookedMu.Unlock()
	key := weak.Make(client)
	if !hooked[key] {
		client.AddHook(failFast{})
		hooked[key] = true
		runtime.AddCleanup(client, forgetHooked, key)
	}
}

// hooked holds the clients that have the hook.
var (
	hookedMu sync.Mutex
	hooked   = map[weak.Pointer[redis.Client]]bool{}
)

// forgetHooked removes a client that was garbage-collected.
func forgetHooked(key weak.Pointer[redis.Client]) {
	hookedMu.Lock()
	defer hookedMu.Unlock()
	delete(hooked, key)
}

// DialHook implements [redis.Hook]. After a failed dial, go-redis keeps dialing in the background for longer than most
// deadlines, and occupies a place in the pool. DialHook prevents this: instead of the error, it returns a connection that
// fails.
func (failFast) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil || errors.Is(ctx.Err(), context.Canceled) { // the caller no longer waits
			return conn, err
		}
		end, _ := net.Pipe()
		return failedConn{end, &dialError{err}}, nil
	}
}

// ProcessHook implements [redis.Hook]. It prevents go-redis from repeating HELLO, the first command on a new connection, if
// there is no reply.
func (failFast) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" {
			cmd = &command{Cmder: cmd, args: cmd.Args()}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (failFast) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// failedConn is the connection that DialHook returns after a failed dial. It sends nothing: the handshake fails with the
// error of the dial.
type failedConn struct {
	net.Conn // implements the other methods
	err      *dialError
}

func (c failedConn) Read([]byte) (int, error) { return 0, c.err }

// Write wraps the error, because go-redis unwraps the error of a handshake once.
func (c failedConn) Write([]byte) (int, error) { return 0, fmt.Errorf("%w", c.err) }

// SyscallConn returns an error, so that go-redis removes the connection from the pool when it checks its idle connections.
func (c failedConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }

// dialError is the error of a failed dial. It does not count as a reply of Redis, even if it is the reply of a Sentinel.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }

// Unwrap returns the error only if it comes from the network. For such errors, go-redis retries the application's own
// commands.
func (e *dialError) Unwrap() error {
	if op, ok := e.err.(*net.OpError); ok {
		return op
	}
	return nil
}

// cause returns the error of the dial without the address.
func (e *dialError) cause() error {
	if op, ok := e.err.(*net.OpError); ok && op.Op == "dial" {
		return op.Err
	}
	return errors.New(e.err.Error())
}
