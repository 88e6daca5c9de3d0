package session

import "github.com/lazyreq/lazyreq/session/storage"

import "context"

// A Counter is a field that holds a whole number, from -MaxCounter to MaxCounter.
// The store adds to it, so that of any number of concurrent requests each one
// counts. Make counters with NewCounter, usually in package-level variables; they
// are values and safe for concurrent use.
//
// What is stored is the number in decimal: a Field[int64] of the same name, and Get
// and Add of Session, know it too.
type Counter struct{ name string }

// NewCounter returns the counter of that name. It panics if the name is empty.
func NewCounter(name string) Counter {
	if name == "" {
		panic("session: NewCounter without a name")
	}
	return Counter{name}
}

// Get returns the number that this request sees: the one it has loaded, and what it
// has added. It is 0 if there is none. A field that holds something else is
// logged and reads as 0.
func (c Counter) Get(ctx context.Context) (int64, error) {
	s, err := From(ctx)
	if err != nil {
		return 0, err
	}
	v, err := s.value(ctx, c.name)
	if err != nil {
		return 0, err
	}
	n, err := v.Counter()
	if err != nil {
		s.undecodable(c.name, err)
	}
	return n, nil
}

// Add adds n, which may be negative, as Session.Add does.
func (c Counter) Add(ctx context.Context, n int64) error {
	s, err := From(ctx)
	if err != nil {
		return err
	}
	return s.write(ctx, c.name, write{Change: storage.Change{Op: storage.OpAdd, N: n}})
}

// Delete removes the counter, which counts on from 0.
func (c Counter) Delete(ctx context.Context) error {
	s, err := From(ctx)
	if err != nil {
		return err
	}
	return s.write(ctx, c.name, write{Change: storage.Change{Op: storage.OpDelete}})
}
