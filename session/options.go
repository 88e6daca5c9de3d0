package session

import (
	"errors"
	"fmt"
	"time"
)

// Options make a Manager. The zero value is the safe default.
type Options struct {
	// Store keeps the sessions. It must not be nil; package server supplies a memstore then.
	Store Store

	// Cookie says how the cookie is sent.
	Cookie Cookie

	// Header, if set, is for APIs: the token comes in this request header and a
	// new one goes out in the response header of the same name, for instance
	// X-Session-Token; there is no cookie then. An empty field in a response tells
	// the client to forget its token. It rules out Cookie.
	Header string

	// IdleTimeout ends a session that was not used for so long; 0 means 30
	// minutes, or AbsoluteTimeout if that is shorter. Use is noted only once a
	// tenth of it has passed since the last time, so a session may end when it
	// was unused for nine tenths of it.
	IdleTimeout time.Duration

	// AbsoluteTimeout ends a session so long after it was created, however much
	// it is used; 0 means 24 hours. Nothing extends it.
	AbsoluteTimeout time.Duration

	// RenewGrace is how long the secret that Renew has replaced can still read the
	// session, for requests that were on their way; it can never write. 0 means 10
	// seconds, negative not at all. It is at most a minute.
	RenewGrace time.Duration

	// SaveTimeout bounds each call of the store that saves or ends a session: the save
	// before the header, Destroy, Revoke, RevokeOthers and RevokeAll. Besides it, only a
	// deadline of the request ends them: a client that goes away, as after a click on
	// "log out", doesn't cancel them. 0 means 5 seconds.
	SaveTimeout time.Duration

	// MaxFieldBytes bounds the name and encoded value of a field, and the name of a
	// user; 0 means 64 KiB, or MaxBytes if that is less.
	MaxFieldBytes int

	// MaxBytes bounds what a session holds: the bytes of names and values, and 64
	// more for each field; 0 means 256 KiB. A write that would exceed it fails with
	// ErrTooLarge. It counts what its request knows: concurrent ones can exceed it
	// together, up to the store's own bound.
	MaxBytes int
}

const (
	defaultIdle     = 30 * time.Minute
	defaultAbsolute = 24 * time.Hour
	defaultGrace    = 10 * time.Second
	maxGrace        = time.Minute
	defaultPatience = 5 * time.Second

	defaultFieldBytes = 64 << 10
	defaultBytes      = 256 << 10

	touchesPerIdle = 10
)

func (o Options) withDefaults() Options {
	if o.AbsoluteTimeout == 0 {
		o.AbsoluteTimeout = defaultAbsolute
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = min(defaultIdle, o.AbsoluteTimeout)
	}
	if o.RenewGrace == 0 {
		o.RenewGrace = defaultGrace
	}
	if o.SaveTimeout == 0 {
		o.SaveTimeout = defaultPatience
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.MaxFieldBytes == 0 {
		o.MaxFieldBytes = min(defaultFieldBytes, o.MaxBytes)
	}
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
	if o.RenewGrace > maxGrace {
		return fmt.Errorf("session: Options.RenewGrace: %v is longer than %v", o.RenewGrace, maxGrace)
	}
	if o.SaveTimeout < 0 {
		return fmt.Errorf("session: Options.SaveTimeout: %v is negative", o.SaveTimeout)
	}
	if o.MaxBytes < 0 {
		return fmt.Errorf("session: Options.MaxBytes: %d is negative", o.MaxBytes)
	}
	if o.MaxFieldBytes < 0 || o.MaxFieldBytes > o.MaxBytes {
		return fmt.Errorf("session: Options.MaxFieldBytes: %d is not between 0 and MaxBytes, %d", o.MaxFieldBytes, o.MaxBytes)
	}
	return nil
}

// carrier returns the way in which tokens come and go.
func (o Options) carrier() (carrier, error) {
	if o.Header == "" {
		c := o.Cookie.withDefaults()
		return c, c.check()
	}
	if o.Cookie != (Cookie{}) {
		return nil, errors.New("session: Options.Cookie: cannot go with Header, which sends no cookie")
	}
	return newHeader(o.Header)
}
