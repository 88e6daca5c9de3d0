package session

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// Store keeps sessions. Packages memstore and redisstore have implementations; package
// storage documents the methods for other implementations.
type Store = storage.Store

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
