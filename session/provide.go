package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

// The property "session" is the handle, made without I/O; "session.load" is the
// one call of the store, made when the handle is first asked for something.
var (
	handleKey = reqctx.NewKey[*Session]("session")
	loadKey   = reqctx.NewKey[*snapshot]("session.load")
)

// snapshot is what a request found when it loaded its session. It is immutable.
type snapshot struct {
	redacted
	sent    bool // the request had something in the token's place, whatever its shape
	exists  bool // the store had the session; otherwise what follows is empty
	old     bool // its secret was renewed: nothing may be written
	token   token
	fields  map[string][]byte
	size    int // of the fields
	created time.Time
	user    string
}

// Provide gives the requests of reg their sessions, as the properties "session"
// (a *Session) and "session.load". It panics if reg has one of them already.
func Provide(reg *reqctx.Registry, m *Manager) {
	if m == nil {
		panic("session: Provide with a nil Manager")
	}
	reqctx.Provide(reg, handleKey, reqctx.Prop[*Session]{
		Handle:  true,
		Resolve: m.handle,
		Store:   func(context.Context, *Session) error { return errReplaced },
		Commit:  m.commit,
	})
	reqctx.Provide(reg, loadKey, reqctx.Prop[*snapshot]{
		Resolve: m.load,
		Store:   func(context.Context, *snapshot) error { return errReplaced },
		Vary:    []string{m.carrier.vary()},
	})
}

var errReplaced = errors.New("session: the property cannot be set; use the methods of Session")

// From returns the session of ctx's request. It does no I/O; the errors of
// loading come from the methods. It fails if ctx carries no request, if the
// request is finished, or if nobody called Provide; the session that it returns
// then is not nil, and all its methods return that error.
func From(ctx context.Context) (*Session, error) {
	s, err := handleKey.Get(ctx)
	if err != nil {
		return &Session{err: err}, err
	}
	return s, nil
}

// handle refuses a raw connection, which has a peer but no request: there is no header
// to save a session before, and what was written would be lost.
func (m *Manager) handle(ctx context.Context) (*Session, error) {
	c := reqctx.From(ctx)
	if c.Request() == nil && c.RemoteAddr() != "" {
		return nil, fmt.Errorf("session: a raw connection has no session: %w", reqctx.ErrNoRequest)
	}
	return &Session{m: m, c: c}, nil
}

// load finds the request's session. A missing or malformed token is no session
// and makes no store call; an unknown or expired one is no session either. Nor is
// what the store cannot read: the client would be locked out until it forgets its
// token.
func (m *Manager) load(ctx context.Context) (*snapshot, error) {
	c := reqctx.From(ctx)
	t, ok, sent := m.carrier.find(c.Request())
	if !ok {
		return &snapshot{sent: sent}, nil
	}
	rec, err := m.store.Load(ctx, t.locator, t.digest(), m.limits)
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
	for name, b := range rec.Fields {
		snap.size += cost(name, storage.Value{Exists: true, Bytes: b})
	}
	return snap, nil
}
