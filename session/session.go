package session

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	// sessionKey is the property "session". It is not exported because Invalidate would drop writes.
	sessionKey = reqctx.NewKey[Session]("session")
	// managerKey is the key of the Manager. No public property can have its name.
	managerKey = reqctx.NewKey[*Manager]("session.*.manager")
)

// A Session is one request's view of its visitor's session. Get it with [From].
//
// The first method that is called loads the session. If that fails, all methods return the error, an [*Error]. Reads
// return the values that were loaded, or that the request has written. Writes are saved together when the
// response's header goes out. Later writes return an error that wraps [reqctx.ErrCommitted]. A write in a request
// without a session creates one. The save goes on for up to 5 seconds if the client leaves.
//
// After a renewal, requests with the old secret can still read the session for 10 seconds. Their writes fail with
// [ErrGone]. See Renew.
//
// A Session is safe for concurrent use. After its request, methods return [reqctx.ErrFinished]. It formats as
// "[redacted]".
type Session struct {
	redacted
	ctx   context.Context // the request's context, or the one that was passed to a method of a Field
	state *state          // nil in the result of From, whose methods load it
}

// state is the loaded session of a request, with the writes that are not saved yet. All Sessions of a request share it.
type state struct {
	redacted
	m *Manager
	c *reqctx.Context

	updating atomic.Bool // whether an update of this request waits for its turn or has it

	mu       sync.Mutex       // never held across I/O or a caller's code
	snap     *snapshot        // the stored session, as far as it is known
	writes   map[string]write // the fields to save; read-only once the header goes out
	size     int64            // of the session with its writes
	swapped  bool             // a field was changed in the store after the load
	renew    bool             // the save also replaces the secret
	remember bool             // the save also makes the session a remembered one
	ended    bool             // destroyed by this request
	user     string           // the save also binds the session to this user, unless empty
}

// From returns the session of ctx's request. It does no I/O. It returns an error if ctx carries no request, if the
// request is finished, or if Provide was not called. Then all methods of the Session also return that error.
func From(ctx context.Context) (Session, error) {
	c, err := sessionKey.Owner(ctx)
	if err != nil {
		return Session{ctx: ctx}, err
	}
	return Session{ctx: c}, checkRequest(c)
}

// Get returns the value of a field as encoding/json decodes it into an any, so that numbers are float64. It returns
// nil if the field does not exist. A value that cannot be decoded is logged and reads as nil.
func (s Session) Get(name string) (any, error) { return dynamic(name).Get(s.ctx) }

// Set sets a field to the JSON encoding of v. Later changes of v have no effect. It returns an error, and changes
// nothing, if v cannot be encoded or would exceed Options.MaxBytes ([ErrTooLarge]).
func (s Session) Set(name string, v any) error { return dynamic(name).Set(s.ctx, v) }

// Delete removes a field, if it exists. It doesn't create a session.
func (s Session) Delete(name string) error { return dynamic(name).Delete(s.ctx) }

// dynamic returns the field with this name, which may be empty.
func dynamic(name string) Field[any] { return Field[any]{name: name} }

// value returns a field as the request sees it.
func (s Session) value(name string) (*state, storage.Value, error) {
	if name == "" {
		return nil, storage.Value{}, errNoName
	}
	st, err := s.lock()
	if err != nil {
		return nil, storage.Value{}, err
	}
	defer st.mu.Unlock()
	return st, st.valueLocked(name), nil
}

// load returns the request's session, which it loads if necessary.
func (s Session) load() (*state, error) {
	loaded, err := sessionKey.Get(s.ctx)
	return loaded.state, err
}

// lock loads the session and locks it.
func (s Session) lock() (*state, error) {
	st, err := s.load()
	if err == nil {
		st.mu.Lock()
	}
	return st, err
}

// lockForWrite is like lock, for a method that changes the session. It returns an error if the header is going out or
// the request's secret is an old one.
func (s Session) lockForWrite(method, field string) (*state, error) {
	st, err := s.loadForWrite(method, field)
	if err == nil {
		err = st.lockForWrite(method, field)
	}
	return st, err
}

// loadForWrite is like load, but returns an error without loading if the header is already going out.
func (s Session) loadForWrite(method, field string) (*state, error) {
	if _, err := s.ownerForWrite(method, field); err != nil {
		return nil, err
	}
	return s.load()
}

// ownerForWrite returns the context of the request, or an error if the header is already going out.
func (s Session) ownerForWrite(method, field string) (*reqctx.Context, error) {
	c, err := sessionKey.Owner(s.ctx)
	if err == nil && c.Committed() {
		err = lateError(method, field)
	}
	return c, err
}

func (s *state) lockForWrite(method, field string) error {
	s.mu.Lock()
	var err error
	switch {
	case s.c.Committed():
		err = lateError(method, field)
	case s.snap.record.Old:
		err = errRenewed()
	default: // commit will lock s.mu later, and sees the writes that are made before
		return nil
	}
	s.mu.Unlock()
	return err
}

// errRenewed returns the error for a write by a request with an old secret.
func errRenewed() error { return &Error{Action: "save", Err: ErrGone} }

// lockForEnd is like lockForWrite, for methods that end sessions. These methods also work if the client has left, and the
// header may go out while they run. The result has the token of the stored session, or the zero token if there is none.
func (s Session) lockForEnd(method string) (*state, token, error) {
	c, err := s.ownerForWrite(method, "")
	if err != nil {
		return nil, token{}, err
	}
	st, err := s.load()
	if err != nil && s.ctx.Err() != nil {
		st, err = loadDetached(c)
	}
	if err != nil {
		return nil, token{}, err
	}
	st.mu.Lock()
	if st.snap.record.Old {
		st.mu.Unlock()
		return nil, token{}, errRenewed()
	}
	return st, st.snap.token, nil
}

// loadDetached loads the session of a request whose client has left. Only the caller gets the result, and the request
// does not save it.
func loadDetached(c *reqctx.Context) (*state, error) {
	m, err := managerKey.Get(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := detach(c)
	defer cancel()
	loaded, err := m.load(ctx)
	return loaded.state, err
}
