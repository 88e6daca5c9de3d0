package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// MaxCounter is the largest number that a [Counter] can hold, and -MaxCounter is the smallest.
const MaxCounter = storage.MaxCounter

// redacted hides the struct that embeds it when the struct is formatted or logged.
type redacted = redact.Hidden

// A Manager manages the sessions of a server. It is immutable and safe for concurrent use. It formats as
// "[redacted]", because its store may hold sessions.
type Manager struct {
	redacted
	store     Store
	opts      Options // with defaults
	transport tokenTransport
	limits    storage.Limits
	turns     sync.Map // from each turn to the channel that the last update in its queue closes
}

// New returns a manager for the sessions in store. It returns an error if store is nil or an option is invalid.
func New(store Store, o Options) (*Manager, error) {
	if option.IsNil(store) {
		return nil, errors.New("session: New: store is nil")
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	return &Manager{store: store, opts: o, transport: transport, limits: storage.Limits{
		Idle: o.IdleTimeout, Absolute: o.AbsoluteTimeout, Touch: o.IdleTimeout / touchesPerIdle, Remembered: o.RememberFor,
	}}, nil
}

// detach returns a context for a store call that goes on when the client leaves. It has the values and the deadline of
// ctx, and ends after saveTimeout. The deadline applies because the client gets a different response when it passes.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(saveTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// Provide gives the requests of reg their sessions, as the property "session", whose value is a loaded [Session]. It
// panics if reg has that property already, or if m is nil.
func Provide(reg *reqctx.Registry, m *Manager) {
	if m == nil {
		panic("session: Provide with a nil Manager")
	}
	reqctx.ProvideState(reg, managerKey, func(context.Context) (*Manager, error) { return m, nil })
	reqctx.Provide(reg, sessionKey, reqctx.Prop[Session]{
		Resolve: m.load,
		Store: func(context.Context, Session) error {
			return errors.New("session: the property cannot be set; use the methods of Session")
		},
		Commit: m.commit,
		Vary:   []string{m.transport.header},
	})
}

// snapshot is the stored session of a request. It is immutable.
type snapshot struct {
	redacted
	sent   bool // the request had something in the token's place, valid or not
	exists bool // the store has the session; otherwise the fields below are zero
	token  token
	record storage.Record
}

// load loads the session of ctx's request.
func (m *Manager) load(ctx context.Context) (Session, error) {
	c := reqctx.From(ctx)
	if err := checkRequest(c); err != nil {
		return Session{}, err
	}
	st := &state{m: m, c: c}
	snap, err := m.find(ctx, c, st.limits())
	if err != nil {
		return Session{}, err
	}
	st.snap = snap
	for name := range snap.record.Fields {
		st.size += fieldSize(name, st.valueLocked(name))
	}
	return Session{ctx: c, state: st}, nil
}

// checkRequest refuses a raw connection. Such a connection sends no header. A session is saved before the header, so
// its writes would be lost.
func checkRequest(c *reqctx.Context) error {
	if c.Request() == nil && c.RemoteAddr() != "" {
		return option.WithText("session: a raw connection has no session", reqctx.ErrNoRequest)
	}
	return nil
}

// find returns c's stored session. A missing or malformed token makes no store call. A session that the store cannot
// read counts as missing, so that the client is not locked out until it forgets its token.
func (m *Manager) find(ctx context.Context, c *reqctx.Context, lim storage.Limits) (*snapshot, error) {
	t, ok, sent := m.transport.find(c.Request())
	if !ok {
		return &snapshot{sent: sent}, nil
	}
	rec, err := m.store.Load(ctx, t.locator, t.digest, lim)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return &snapshot{sent: sent}, nil
	case errors.Is(err, storage.ErrCorrupt):
		c.Logger().Error("session: a stored session cannot be read and is ignored", "error", err)
		return &snapshot{sent: sent}, nil
	case err != nil:
		return nil, &Error{Action: "load", Err: err}
	}
	return &snapshot{sent: sent, exists: true, token: t, record: rec}, nil
}
