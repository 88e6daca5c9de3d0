package session

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// Options configures a [Manager]. The zero value means the defaults, which are safe.
type Options struct {
	// Cookie configures the cookie.
	Cookie Cookie
	// Header, if set, names the request header that carries the token, for APIs without cookies. An example is
	// X-Session-Token. A new token goes out in the response header with the same name; an empty one means that the
	// client must forget its token. Header cannot be combined with Cookie.
	Header string
	// HeaderScheme, if set, precedes the token and a space in Header, as in "Authorization: Bearer <token>". Header can be
	// Authorization only with a scheme. The case of a client's scheme does not matter.
	HeaderScheme string
	// IdleTimeout ends a session that was not used for this long. Use is recorded only once a tenth of IdleTimeout
	// has passed since the last record, so a session may end after nine tenths of it. Default: 30 minutes, or
	// AbsoluteTimeout if that is shorter.
	IdleTimeout time.Duration
	// AbsoluteTimeout ends a session this long after its creation. Nothing extends it. Default: 24 hours.
	AbsoluteTimeout time.Duration
	// RememberFor, if set, replaces IdleTimeout and AbsoluteTimeout for the sessions of [Session.Remember]. It is at
	// least AbsoluteTimeout, and at most 400 days, which is the longest time for which browsers keep a cookie. Servers
	// without it, such as those with the earlier release, end these sessions by the other timeouts.
	RememberFor time.Duration
	// MaxBytes limits the size of a session, which is the number of bytes in the names and encoded values, plus 64
	// for each field. A write that would exceed it fails with ErrTooLarge. Each request checks the session as it sees
	// it, so concurrent requests can together exceed MaxBytes, up to the store's own bound. Default: 256 KiB.
	MaxBytes int64
	// MaxPerUser limits the number of sessions that are bound to the same user. A login that would exceed it ends
	// the sessions with the earliest logins, even if it fails later. If several logins exceed it at the same time,
	// some of them may fail with ErrGone. The zero value means no limit.
	MaxPerUser int
	// Devices records the client's address and the first 256 bytes of its User-Agent each time that the use of a
	// user's session is recorded (see IdleTimeout). List returns them, for a list of the user's devices. They are
	// personal data, which the store keeps with the session, unencrypted. Without Devices, later uses leave them
	// unchanged, until the session ends.
	Devices bool
	// ClientAddr returns the address that Devices records. Behind proxies, use the function that IPOptions.Client of
	// package ratelimit returns. It must not use the session. Default: the address of the connection.
	ClientAddr func(ctx context.Context, r *http.Request) netip.Addr
}

const (
	// touchesPerIdle is how often the use of a session is recorded within IdleTimeout.
	touchesPerIdle = 10
	// renewGrace is how long a secret that Renew has replaced can still read the session.
	renewGrace = 10 * time.Second
	// saveTimeout limits the duration of each store call that saves or ends a session.
	saveTimeout = 5 * time.Second
	// maxRemember is the maximum of RememberFor.
	maxRemember = 400 * 24 * time.Hour
)

func (o Options) withDefaults() Options {
	o.AbsoluteTimeout = cmp.Or(o.AbsoluteTimeout, 24*time.Hour)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, min(30*time.Minute, o.AbsoluteTimeout))
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<10)
	if o.ClientAddr == nil {
		o.ClientAddr = connAddr
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.AbsoluteTimeout < 0:
		return optionError("AbsoluteTimeout", "is %v, want 0 or more", o.AbsoluteTimeout)
	case o.IdleTimeout < 0 || o.IdleTimeout > o.AbsoluteTimeout:
		return optionError("IdleTimeout", "is %v, want 0 to AbsoluteTimeout, which is %v", o.IdleTimeout, o.AbsoluteTimeout)
	case o.RememberFor != 0 && (o.RememberFor < o.AbsoluteTimeout || o.RememberFor > maxRemember):
		return optionError("RememberFor", "is %v, want 0, or AbsoluteTimeout, which is %v, to %v", o.RememberFor, o.AbsoluteTimeout, maxRemember)
	case o.MaxBytes < 0:
		return optionError("MaxBytes", "is %d, want 0 or more", o.MaxBytes)
	case o.MaxPerUser < 0:
		return optionError("MaxPerUser", "is %d, want 0 or more", o.MaxPerUser)
	}
	return nil
}

func optionError(field, format string, args ...any) error {
	return option.Errorf("session", "Options."+field, format, args...)
}
