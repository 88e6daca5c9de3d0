package lazy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
)

// ErrGoexit is what the other waiters get when a function ended its goroutine
// with [runtime.Goexit] (t.FailNow does) instead of returning.
var ErrGoexit = errors.New("lazy: the function called runtime.Goexit")

// PanicError is a panic of a lazily computed value. Everybody who waits for
// the value panics with the same *PanicError, whatever goroutine the function
// ran on. [http.ErrAbortHandler] alone is passed on as it is, because
// net/http recognises it by identity.
type PanicError struct {
	Name  string // what was being computed
	Value any    // what the function panicked with
	Stack []byte // the stack of the function at that moment
}

// Error tells what panicked, with what, and where.
func (p *PanicError) Error() string {
	return fmt.Sprintf("lazy: %s panicked: %v\n\n%s", p.Name, p.Value, p.Stack)
}

// Unwrap returns the value of the panic when it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Raise panics with p, or with [http.ErrAbortHandler] itself when that is the
// value.
func (p *PanicError) Raise() {
	if p.Value == http.ErrAbortHandler {
		panic(p.Value)
	}
	panic(p)
}

// NewPanicError wraps a recovered value. A *PanicError that travels through an
// outer function keeps the inner name and stack: those are where it happened.
// Call it from the deferred function that recovered, where the stack is still
// that of the panic.
func NewPanicError(name string, v any) *PanicError {
	if p, ok := v.(*PanicError); ok {
		return p
	}
	return &PanicError{Name: name, Value: v, Stack: debug.Stack()}
}

// guard runs fn and then end, however fn ends: with nil when it returned, with
// a *PanicError when it panicked (the panic stops here), and with [ErrGoexit]
// when it ends its goroutine (which goes on ending afterwards).
func guard(name string, fn func(), end func(abnormal error)) {
	returned := false
	defer func() {
		switch v := recover(); {
		case v != nil:
			end(NewPanicError(name, v))
		case !returned:
			end(ErrGoexit)
		default:
			end(nil)
		}
	}()
	fn()
	returned = true
}
