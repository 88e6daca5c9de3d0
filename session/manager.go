package session

// A Manager makes the sessions of one server. It is immutable and safe for
// concurrent use. It formats as "[redacted]", because its store may hold sessions.
type Manager struct {
	redacted
	store  Store
	cookie Cookie
	limits Limits
}

// New returns a manager. Its error names the option that is out of range or
// cannot go with another.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Store == nil {
		memory, err := NewMemory(MemoryOptions{})
		if err != nil {
			return nil, err
		}
		o.Store = memory
	}
	return &Manager{
		store:  o.Store,
		cookie: o.Cookie,
		limits: Limits{
			Idle:     o.IdleTimeout,
			Absolute: o.AbsoluteTimeout,
			Touch:    o.IdleTimeout / touchesPerIdle,
		},
	}, nil
}
