package redispipe

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// failedConn is the connection that go-redis gets from a dial that failed. Nothing can be sent on
// it: the handshake, which comes first, fails with the dial's error.
type failedConn struct {
	net.Conn // a pipe's end, for everything else
	err      *dialError
}

func newFailedConn(err *dialError) failedConn {
	end, _ := net.Pipe()
	return failedConn{end, err}
}

func (c failedConn) Read([]byte) (int, error) { return 0, c.err }

// Write returns the error wrapped, because go-redis unwraps errors of the handshake once.
func (c failedConn) Write([]byte) (int, error) { return 0, fmt.Errorf("%w", c.err) }

// SyscallConn has go-redis discard the connection if it is in the pool: go-redis checks an idle
// connection by its descriptor.
func (c failedConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }

// dialError is the error of a dial that failed. It never counts as a reply of Redis, even if it comes
// from a reply of a Sentinel.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }

// Unwrap returns the error of the network, if it is one. go-redis repeats commands of the application
// after it.
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
