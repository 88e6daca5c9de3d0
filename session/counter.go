package session

import (
	"context"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Counter is a field that holds a whole number, from -[MaxCounter] to MaxCounter.
// The store adds to it, so that concurrent requests all count. Make counters with
// [NewCounter], usually in package-level variables; they are values and safe for
// concurrent use.
//
// The store keeps the number in decimal, so a Field[int64] of the same name, and Get
// and Add of [Session], can use it too.
type Counter struct{ f Field[int64] }

// NewCounter returns the counter of that name. It panics if the name is empty.
func NewCounter(name string) Counter { return Counter{NewField[int64](name)} }

// Get returns the number that this request sees: the loaded one and what the request
// added. It is 0 if there is none. A field that holds something else is
// logged and reads as 0.
func (c Counter) Get(ctx context.Context) (int64, error) { return c.f.Get(ctx) }

// Add adds n, which may be negative, as [Session.Add] does.
func (c Counter) Add(ctx context.Context, n int64) error {
	return Session{ctx: ctx}.keepWrite(c.f.name, write{Change: storage.Change{Op: storage.OpAdd, N: n}})
}

// Delete removes the counter, which counts on from 0.
func (c Counter) Delete(ctx context.Context) error { return c.f.Delete(ctx) }
