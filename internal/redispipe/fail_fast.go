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

// hooked holds the clients with the hook.
var (
	hookedMu sync.Mutex
	hooked   = map[weak.Pointer[redis.Client]]bool{}
)

func forgetHooked(key weak.Pointer[redis.Client]) {
	hookedMu.Lock()
	defer hookedMu.Unlock()
	delete(hooked, key)
}

// DialHook implements [redis.Hook]. After a failed dial, go-redis would keep dialling in the background for longer than
// most deadlines, and keep a place of the pool. DialHook prevents this: it returns a connection that fails.
func (failFast) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil || errors.Is(ctx.Err(), context.Canceled) { // its caller has left
			return conn, err
		}
		end, _ := net.Pipe()
		return failedConn{end, &dialError{err}}, nil
	}
}

// ProcessHook implements [redis.Hook]. The first command on a new connection is HELLO. go-redis would repeat it if it
// got no reply.
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
