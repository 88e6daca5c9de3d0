package session

import (
	"cmp"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// Options configure a [Manager]. The zero value means the defaults, which are safe.
type Options struct {
	// Cookie configures the cookie.
	Cookie Cookie

	// Header, if set, is for APIs without cookies: the request header that carries the
	// token, for instance X-Session-Token. A new token goes out in the response header
	// of the same name; an empty one means that the client must forget its token.
	// Header excludes Cookie.
	Header string

	// IdleTimeout ends a session that was not used for this long; 0 means 30
	// minutes, or AbsoluteTimeout if that is shorter. Use is recorded only once a
	// tenth of it has passed since the last time, so a session may end after nine
	// tenths of it.
	IdleTimeout time.Duration

	// AbsoluteTimeout ends a session this long after its creation, however much
	// it is used; 0 means 24 hours. Nothing extends it.
	AbsoluteTimeout time.Duration

	// RenewGrace is how long a secret that Renew has replaced can still read the
	// session, for requests that are already under way; it can never write. 0 means 10
	// seconds, a negative value none. The maximum is a minute.
	RenewGrace time.Duration

	// SaveTimeout bounds each store call that saves or ends a session: the save
	// before the header, Destroy, Revoke, RevokeOthers and RevokeAll. Besides it, only a
	// deadline of the request ends these calls; a client that goes away, as after a click
	// on "log out", doesn't. 0 means 5 seconds.
	SaveTimeout time.Duration

	// MaxFieldBytes bounds the name and encoded value of a field, and the name of a
	// user; 0 means 64 KiB, or MaxBytes if that is less.
	MaxFieldBytes int

	// MaxBytes bounds the size of a session: the bytes of names and values, and 64
	// more for each field; 0 means 256 KiB. A write that would exceed it fails with
	// ErrTooLarge. Each request checks the session as it sees it, so concurrent
	// requests can exceed MaxBytes together, up to the store's own bound.
	MaxBytes int
}

const (
	maxGrace       = time.Minute
	touchesPerIdle = 10
)

func (o Options) withDefaults() Options {
	o.AbsoluteTimeout = cmp.Or(o.AbsoluteTimeout, 24*time.Hour)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, min(30*time.Minute, o.AbsoluteTimeout))
	o.RenewGrace = max(0, cmp.Or(o.RenewGrace, 10*time.Second))
	o.SaveTimeout = cmp.Or(o.SaveTimeout, 5*time.Second)
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<10)
	o.MaxFieldBytes = cmp.Or(o.MaxFieldBytes, min(64<<10, o.MaxBytes))
	return o
}

func (o Options) check() error {
	switch {
	case o.AbsoluteTimeout < 0:
		return optionError("AbsoluteTimeout", "is %v, want 0 or more", o.AbsoluteTimeout)
	case o.IdleTimeout < 0 || o.IdleTimeout > o.AbsoluteTimeout:
		return optionError("IdleTimeout", "is %v, want 0 to AbsoluteTimeout, which is %v", o.IdleTimeout, o.AbsoluteTimeout)
	case o.RenewGrace > maxGrace:
		return optionError("RenewGrace", "is %v, want at most %v", o.RenewGrace, maxGrace)
	case o.SaveTimeout < 0:
		return optionError("SaveTimeout", "is %v, want 0 or more", o.SaveTimeout)
	case o.MaxBytes < 0:
		return optionError("MaxBytes", "is %d, want 0 or more", o.MaxBytes)
	case o.MaxFieldBytes < 0 || o.MaxFieldBytes > o.MaxBytes:
		return optionError("MaxFieldBytes", "is %d, want 0 to MaxBytes, which is %d", o.MaxFieldBytes, o.MaxBytes)
	}
	return nil
}

func optionError(field, format string, args ...any) error {
	return option.Errorf("session", "Options."+field, format, args...)
}
