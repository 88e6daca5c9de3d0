package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	// sessionKey is the property "session". It is not exported because Invalidate would drop writes.
	sessionKey = reqctx.NewKey[Session]("session")
	// managerKey is a state. No public property can have its name.
	managerKey = reqctx.NewKey[*Manager]("session.*.manager")
)

// A Session is one request's view of its visitor's session. Get it with [From].
//
// The first method called loads it; all of them return the error of loading, an
// [*Error], if that failed. Reads see the session as it was loaded, with the
// request's own writes over it. Writes are kept until the response's header goes
// out and are saved then, together; later ones return an error that is
// [reqctx.ErrCommitted]. A write to a request without session makes a new one. The
// save doesn't need the client to wait for it: see Options.SaveTimeout.
//
// A request whose secret was renewed a moment ago may read the session during
// Options.RenewGrace; its writes fail with [ErrGone].
//
// A Session is safe for concurrent use. It must not be used after its request: methods
// return [reqctx.ErrFinished] then. It formats as "[redacted]".
type Session struct {
	redacted
	ctx   context.Context // for loads; of the request, or of the caller of a Field's method
	state *state          // nil in what From returns, whose methods load it
}

// state is the loaded session of a request, with the writes that are not saved yet. All
// Sessions of a request share it.
type state struct {
	redacted
	m *Manager
	c *reqctx.Context

	updating atomic.Bool // an update waits for its turn or has it

	mu      sync.Mutex       // never held across I/O or a caller's code
	snap    *snapshot        // what the store has, as far as is known
	writes  map[string]write // the fields to save; read-only once the header goes out
	size    int              // of the session with its writes
	swapped bool             // a field was changed in the store after the load
	renew   bool             // the save also replaces the secret
	ended   bool             // destroyed by this request
	user    string           // the save also binds the session to this user, unless empty
}

// From returns the session of ctx's request. It does no I/O; errors of loading come from the
// methods. It returns an error, which all methods return as well, if ctx carries no request, if
// the request is finished, or if Provide was not called.
func From(ctx context.Context) (Session, error) {
	c, err := sessionKey.Owner(ctx)
	if err != nil {
		return Session{ctx: ctx}, err
	}
	return Session{ctx: c}, checkRequest(c)
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

// lockForWrite is lock for a method that changes the session. It returns an error if the header
// is going out or the request's secret is an old one.
func (s Session) lockForWrite(method, field string) (*state, error) {
	st, err := s.loadForWrite(method, field)
	if err == nil {
		err = st.lockForWrite(method, field)
	}
	return st, err
}

// loadForWrite is load, unless the header is already going out.
func (s Session) loadForWrite(method, field string) (*state, error) {
	c, err := sessionKey.Owner(s.ctx)
	if err == nil && c.Committed() {
		err = lateError(method, field)
	}
	if err != nil {
		return nil, err
	}
	return s.load()
}

func (s *state) lockForWrite(method, field string) error {
	s.mu.Lock()
	var err error
	switch {
	case s.c.Committed():
		err = lateError(method, field)
	case s.snap.old:
		err = errRenewed()
	default: // commit has yet to lock s.mu, and will see what is written until then
		return nil
	}
	s.mu.Unlock()
	return err
}

// errRenewed is the error of a write by a request whose secret is an old one.
func errRenewed() error { return &Error{Action: "save", Err: ErrGone} }

// lockForEnd is lockForWrite for methods that end sessions: it loads this one even if the client
// has gone, and the header may go out meanwhile. It returns the token of the saved session.
func (s Session) lockForEnd(method string) (*state, token, error) {
	st, err := s.loadForWrite(method, "")
	if err != nil && s.ctx.Err() != nil && !errors.Is(err, reqctx.ErrCommitted) {
		st, err = s.loadDetached()
	}
	if err != nil {
		return nil, token{}, err
	}
	st.mu.Lock()
	if st.snap.old {
		st.mu.Unlock()
		return nil, token{}, errRenewed()
	}
	return st, st.snap.token, nil
}

// loadDetached loads the session of a client that has gone for this caller alone. No other method
// finds it, and nothing is saved.
func (s Session) loadDetached() (*state, error) {
	c, err := sessionKey.Owner(s.ctx)
	if err != nil {
		return nil, err
	}
	m, err := managerKey.Get(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := m.detach(c)
	defer cancel()
	loaded, err := m.load(ctx)
	return loaded.state, err
}

// Get returns the value of a field as encoding/json decodes it into an any, so
// that numbers are float64; nil if there is none. A value that cannot be decoded
// is logged and reads as nil: it doesn't end the session.
func (s Session) Get(name string) (any, error) {
	var v any
	st, val, err := s.value(name)
	if err != nil || !st.decode(name, val, nil, &v) {
		return nil, err
	}
	return v, nil
}

// Set gives a field the JSON encoding of v; later changes of v don't count. It
// returns an error if v cannot be encoded, or one that is [ErrTooLarge] if it would exceed
// Options.MaxFieldBytes or MaxBytes, and changes nothing then.
func (s Session) Set(name string, v any) error { return s.encode(name, nil, v, false) }

// Add adds n to a field that holds a whole number, or nothing, which counts as 0.
// The store adds, so that concurrent requests lose nothing. It returns
// [ErrNotCounter] if the field holds something else, or if the sum would be out of the
// range of -MaxCounter to MaxCounter.
func (s Session) Add(name string, n int64) error {
	return s.keepWrite(name, write{Change: storage.Change{Op: storage.OpAdd, N: n}})
}

// Delete removes a field, if it is there. It doesn't make a session.
func (s Session) Delete(name string) error {
	return s.keepWrite(name, write{Change: storage.Change{Op: storage.OpDelete}})
}

// Take returns the value of a field, as Get does, and removes it as [Flash.Take] does.
func (s Session) Take(name string) (any, error) {
	var v any
	st, val, err := s.take(name)
	if err != nil || !st.decode(name, val, nil, &v) {
		return nil, err
	}
	return v, nil
}

// value returns a field, the request's own writes first.
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

// valueLocked returns a field as this request sees it.
func (s *state) valueLocked(name string) storage.Value {
	bytes, exists := s.snap.fields[name]
	v := storage.Value{Exists: exists, Bytes: bytes}
	if w, written := s.writes[name]; written {
		v, _ = w.Apply(v) // a field that is not a counter stays; the store will refuse to add to it
	}
	return v
}

// decode decodes a field's value into the pointer v, and logs an error. It reports
// whether there was a value that could be decoded; otherwise v may be half written. A nil
// codec is JSON.
func (s *state) decode(name string, val storage.Value, codec Codec, v any) bool {
	if !val.Exists {
		return false
	}
	err := decodeValue(val.Bytes, codec, v)
	if err != nil {
		s.c.Logger().Warn("session: a field cannot be decoded and is ignored", "field", name, "error", err)
	}
	return err == nil
}

func decodeValue(data []byte, codec Codec, v any) error {
	if codec == nil {
		return json.Unmarshal(data, v)
	}
	return codec.Decode(data, v)
}

func (s Session) encode(name string, codec Codec, v any, guard bool) error {
	data, err := encodeValue(name, codec, v)
	if err != nil {
		return err
	}
	return s.keepWrite(name, write{Change: storage.Change{Op: storage.OpSet, Value: data}, guard: guard})
}

func encodeValue(name string, codec Codec, v any) (data []byte, err error) {
	if codec == nil {
		data, err = json.Marshal(v)
	} else {
		data, err = codec.Encode(v)
	}
	if err != nil {
		return nil, fmt.Errorf("session: field %q cannot be encoded: %w", name, err)
	}
	return data, nil
}
