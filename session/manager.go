package session

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Manager makes the sessions of one server. It is immutable and safe for
// concurrent use. It formats as "[redacted]", because its store may hold sessions.
type Manager struct {
	redacted
	store      Store
	carrier    carrier
	persistent bool // cookies have a Max-Age
	limits     storage.Limits
	grace      time.Duration
	patience   time.Duration // with a call that saves or ends a session

	maxFieldBytes, maxBytes int
}

// New returns a manager. Its error names the option that is out of range or
// cannot go with another.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	carrier, err := o.carrier()
	if err != nil {
		return nil, err
	}
	if o.Store == nil {
		return nil, errors.New("session: Options.Store is nil")
	}
	return &Manager{
		store:      o.Store,
		carrier:    carrier,
		persistent: o.Cookie.Persistent,
		limits: storage.Limits{
			Idle:     o.IdleTimeout,
			Absolute: o.AbsoluteTimeout,
			Touch:    o.IdleTimeout / touchesPerIdle,
		},
		grace:         max(0, o.RenewGrace),
		patience:      o.SaveTimeout,
		maxFieldBytes: o.MaxFieldBytes,
		maxBytes:      o.MaxBytes,
	}, nil
}

// lasting returns a context for what is done even if the client doesn't wait for it: it
// has the values and the deadline of the request's, and one of its own. The first counts
// because whoever set it has answered the client then, and not with what is saved here.
func (m *Manager) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(m.patience)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}
