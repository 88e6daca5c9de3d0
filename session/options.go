package session

import (
	"fmt"
	"time"
)

// Options make a Manager. The zero value is the safe default.
type Options struct {
	// Store keeps the sessions; nil means a Memory with its default bounds.
	Store Store

	// Cookie says how the cookie is sent.
	Cookie Cookie

	// IdleTimeout ends a session that was not used for so long; 0 means 30
	// minutes, or AbsoluteTimeout if that is shorter. Use is noted only once a
	// tenth of it has passed since the last time, so a session may end when it
	// was unused for nine tenths of it.
	IdleTimeout time.Duration

	// AbsoluteTimeout ends a session so long after it was created, however much
	// it is used; 0 means 24 hours. Nothing extends it.
	AbsoluteTimeout time.Duration
}

const (
	defaultIdle     = 30 * time.Minute
	defaultAbsolute = 24 * time.Hour

	touchesPerIdle = 10
)

func (o Options) withDefaults() Options {
	if o.AbsoluteTimeout == 0 {
		o.AbsoluteTimeout = defaultAbsolute
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = min(defaultIdle, o.AbsoluteTimeout)
	}
	o.Cookie = o.Cookie.withDefaults()
	return o
}

func (o Options) check() error {
	if o.AbsoluteTimeout < 0 {
		return fmt.Errorf("session: Options.AbsoluteTimeout: %v is negative", o.AbsoluteTimeout)
	}
	if o.IdleTimeout < 0 {
		return fmt.Errorf("session: Options.IdleTimeout: %v is negative", o.IdleTimeout)
	}
	if o.IdleTimeout > o.AbsoluteTimeout {
		return fmt.Errorf("session: Options.IdleTimeout: %v is longer than AbsoluteTimeout, %v", o.IdleTimeout, o.AbsoluteTimeout)
	}
	return o.Cookie.check()
}
