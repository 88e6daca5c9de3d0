package session

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

// The property "session" is the handle, made without I/O; "session.load" is the
// store call, made when a method of the handle needs the session.
var (
	handleKey = reqctx.NewKey[*Session]("session")
	loadKey   = reqctx.NewKey[*snapshot]("session.load")
)

// snapshot is what the store has of a request's session. It is immutable.
type snapshot struct {
	redacted
	sent    bool // the request had something in the token's place, valid or not
	exists  bool // the store has the session; otherwise the fields below are zero
	old     bool // the request's secret was replaced: it cannot write
	token   token
	fields  map[string][]byte
	size    int // of the fields
	created time.Time
	user    string
}

// Provide gives the requests of reg their sessions, as the properties "session"
// (a *Session) and "session.load". It panics if reg has one of them already, or if m
// is nil.
func Provide(reg *reqctx.Registry, m *Manager) {
	if m == nil {
		panic("session: Provide with a nil Manager")
	}
	reqctx.Provide(reg, handleKey, reqctx.Prop[*Session]{
		Handle:  true,
		Resolve: m.newHandle,
		Store:   func(context.Context, *Session) error { return errReadOnly },
		Commit:  m.commit,
	})
	reqctx.Provide(reg, loadKey, reqctx.Prop[*snapshot]{
		Resolve: m.load,
		Store:   func(context.Context, *snapshot) error { return errReadOnly },
		Vary:    []string{m.transport.header},
	})
}

var errReadOnly = errors.New("session: the property cannot be set; use the methods of Session")

// From returns the session of ctx's request. It does no I/O; errors of loading come
// from the methods. It returns an error if ctx carries no request, if the request is
// finished, or if Provide was not called. The returned session is never nil: after an
// error all its methods return that error.
func From(ctx context.Context) (*Session, error) {
	s, err := handleKey.Get(ctx)
	if err != nil {
		return &Session{err: err}, err
	}
	return s, nil
}

// newHandle refuses a raw connection, which has a peer but no request: it has no header
// to save a session before, and writes would be lost.
func (m *Manager) newHandle(ctx context.Context) (*Session, error) {
	c := reqctx.From(ctx)
	if c.Request() == nil && c.RemoteAddr() != "" {
		return nil, errtext.New("session: a raw connection has no session", reqctx.ErrNoRequest)
	}
	return &Session{m: m, c: c}, nil
}

// load finds the request's session. A missing or malformed token is no session
// and makes no store call; an unknown or expired one is no session either. A session
// that the store cannot read counts as none, because the client would be locked out
// until it forgets its token.
func (m *Manager) load(ctx context.Context) (*snapshot, error) {
	c := reqctx.From(ctx)
	t, ok, sent := m.transport.find(c.Request())
	if !ok {
		return &snapshot{sent: sent}, nil
	}
	rec, err := m.store.Load(ctx, t.locator, t.digest, m.limits)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return &snapshot{sent: sent}, nil
	case errors.Is(err, storage.ErrCorrupt):
		c.Logger().Error("session: a stored session cannot be read and is ignored", "error", err)
		return &snapshot{sent: sent}, nil
	case err != nil:
		return nil, &Error{Action: "load", Err: err}
	}
	snap := &snapshot{
		sent: sent, exists: true, old: rec.Old, token: t, fields: rec.Fields, created: rec.Created, user: rec.User,
	}
	for name, value := range rec.Fields {
		snap.size += fieldOverhead + len(name) + len(value)
	}
	return snap, nil
}
