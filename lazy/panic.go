package lazy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
)

// ErrGoexit is the error that the other waiters get if a function calls [runtime.Goexit], as t.FailNow does.
var ErrGoexit = errors.New("lazy: the function called runtime.Goexit")

// PanicError is a panic of a lazily computed value. Every waiter panics with the same *PanicError, even if the
// function ran on another goroutine. Only [http.ErrAbortHandler] is raised unwrapped, because net/http compares it by
// identity.
type PanicError struct {
	Name  string // the name of the value or task
	Value any    // the value that the function panicked with
	Stack []byte // the function's stack
}

// Error returns the name, the value of the panic and the stack.
func (p *PanicError) Error() string {
	return fmt.Sprintf("lazy: %s panicked: %v\n\n%s", p.Name, p.Value, p.Stack)
}

// Unwrap returns the value of the panic if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Raise panics with p, or with [http.ErrAbortHandler] itself if that is the value.
func (p *PanicError) Raise() {
	if p.Value == http.ErrAbortHandler {
		panic(p.Value)
	}
	panic(p)
}

// NewPanicError wraps a recovered value. It returns a *PanicError unchanged, so that a panic that passes through outer
// functions keeps the inner name and stack. It must be called from the deferred function that recovered, where the
// stack is still the panic's.
func NewPanicError(name string, v any) *PanicError {
	if p, ok := v.(*PanicError); ok {
		return p
	}
	return &PanicError{Name: name, Value: v, Stack: debug.Stack()}
}

// Guard calls fn, and then end with fn's error, its panic (which stops here), or [ErrGoexit] if fn ends its goroutine.
func Guard(name string, fn func() error, end func(err error, panics *PanicError)) {
	err := ErrGoexit
	var panics *PanicError
	defer func() {
		if v := recover(); v != nil {
			panics = NewPanicError(name, v)
			err = panics
		}
		end(err, panics)
	}()
	err = fn()
}
