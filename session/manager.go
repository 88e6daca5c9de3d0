package session

import "time"

// A Manager makes the sessions of one server. It is immutable and safe for
// concurrent use. It formats as "[redacted]", because its store may hold sessions.
type Manager struct {
	redacted
	store      Store
	carrier    carrier
	persistent bool // cookies have a Max-Age
	limits     Limits
	grace      time.Duration

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
		if o.Store, err = NewMemory(MemoryOptions{}); err != nil {
			return nil, err
		}
	}
	return &Manager{
		store:      o.Store,
		carrier:    carrier,
		persistent: o.Cookie.Persistent,
		limits: Limits{
			Idle:     o.IdleTimeout,
			Absolute: o.AbsoluteTimeout,
			Touch:    o.IdleTimeout / touchesPerIdle,
		},
		grace:         max(0, o.RenewGrace),
		maxFieldBytes: o.MaxFieldBytes,
		maxBytes:      o.MaxBytes,
	}, nil
}
