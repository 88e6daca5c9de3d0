package session

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// MaxCounter is the largest number that a [Counter] holds, and -MaxCounter the smallest.
const MaxCounter = storage.MaxCounter

// redacted hides the struct that embeds it, as it holds a part of a token or a value.
type redacted = redact.Hidden

// A Manager makes the sessions of one server. It is immutable and safe for
// concurrent use. It formats as "[redacted]", because its store may hold sessions.
type Manager struct {
	redacted
	store     Store
	opts      Options // with defaults
	transport tokenTransport
	limits    storage.Limits
	turns     turns
}

// New returns a manager of the sessions in store. It returns an error if store is nil,
// or one that names the invalid option.
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
		Idle:     o.IdleTimeout,
		Absolute: o.AbsoluteTimeout,
		Touch:    o.IdleTimeout / touchesPerIdle,
	}}, nil
}

// detach returns a context for a call that goes on when the client goes away. It has
// the values and the deadline of ctx, and SaveTimeout. The deadline counts because the
// client got another response by then.
func (m *Manager) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(m.opts.SaveTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// Provide gives the requests of reg their sessions, as the property "session", whose value is a
// [Session] that is loaded. It panics if reg has it already, or if m is nil.
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

// snapshot is what the store has of a request's session. It is immutable.
type snapshot struct {
	redacted
	sent    bool // the request had something in the token's place, valid or not
	exists  bool // the store has the session; otherwise the fields below are zero
	old     bool // the request's secret was replaced: it cannot write
	token   token
	fields  map[string][]byte
	created time.Time
	user    string
}

// load finds the request's session. A missing or malformed token is no session
// and makes no store call; an unknown or expired one is no session either. A session
// that the store cannot read counts as none, because the client would be locked out
// until it forgets its token.
func (m *Manager) load(ctx context.Context) (Session, error) {
	c := reqctx.From(ctx)
	if err := checkRequest(c); err != nil {
		return Session{}, err
	}
	snap, err := m.find(ctx, c)
	if err != nil {
		return Session{}, err
	}
	return Session{ctx: c, state: &state{m: m, c: c, snap: snap, size: snap.size()}}, nil
}

// checkRequest refuses a raw connection, which has a peer but no request: it has no header to
// save a session before, and writes would be lost.
func checkRequest(c *reqctx.Context) error {
	if c.Request() == nil && c.RemoteAddr() != "" {
		return option.WithText("session: a raw connection has no session", reqctx.ErrNoRequest)
	}
	return nil
}

// find returns what the store has of c's session.
func (m *Manager) find(ctx context.Context, c *reqctx.Context) (*snapshot, error) {
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
	return &snapshot{
		sent: sent, exists: true, old: rec.Old, token: t, fields: rec.Fields, created: rec.Created, user: rec.User,
	}, nil
}

// size returns the size of the fields.
func (s *snapshot) size() (n int) {
	for name, value := range s.fields {
		n += fieldOverhead + len(name) + len(value)
	}
	return n
}
