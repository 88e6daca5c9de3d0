package inspect

import (
	"cmp"
	"crypto/rand"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// Options configure an [Inspector]. The zero value is usable and safe.
type Options struct {
	// Token is the bearer token for the page's data, with at least 16 characters. The zero value means a random one,
	// which [Inspector.Token] returns.
	Token string
	// Hosts lists the host names, without a port, with which the page may be requested, in addition to localhost and
	// loopback addresses. Requests with other names are refused, so that another web site cannot read the page
	// through its own DNS name.
	Hosts []string
	// InsecureAllowRemote allows clients with other than loopback addresses, and lets [Listen] listen on such
	// addresses. The token then crosses the network: use TLS.
	InsecureAllowRemote bool

	// Slow is the minimum duration of a slow request. The zero value means 250 ms.
	Slow time.Duration
	// PerSecond is the maximum number of requests that are recorded in a second for each route and range of
	// durations. For requests that failed or were denied, it is at least 10. Slow requests are always recorded. The
	// zero value means 10.
	PerSecond int
	// MaxBytes limits the memory of recorded requests and routes approximately. The oldest requests are dropped. The
	// zero value means 8 MiB; the minimum is 256 KiB.
	MaxBytes int
	// Values names the properties whose values are shown, in the format of [fmt.Sprint] and cut after 120 bytes.
	// Formatting a value must be safe while tasks of the request run.
	Values []string
	// Paths shows the path of each request. By default only the route is shown, because paths can contain personal
	// data.
	Paths bool
}

const (
	defaultSlow      = 250 * time.Millisecond
	defaultPerSecond = 10
	defaultMaxBytes  = 8 << 20
	minMaxBytes      = 256 << 10
	minTokenLength   = 16
)

func (o Options) withDefaults() Options {
	if o.Token == "" {
		o.Token = rand.Text()
	}
	o.Slow = cmp.Or(o.Slow, defaultSlow)
	o.PerSecond = cmp.Or(o.PerSecond, defaultPerSecond)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	return o
}

// check returns an error if a field is out of range.
func (o Options) check() error {
	if len(o.Token) < minTokenLength {
		return option.Errorf("inspect", "Options.Token", "has %d characters, want at least %d", len(o.Token), minTokenLength)
	}
	if err := option.Duration("inspect", "Options.Slow", o.Slow, 0); err != nil {
		return err
	}
	if err := option.Count("inspect", "Options.PerSecond", o.PerSecond, 1); err != nil {
		return err
	}
	return option.Count("inspect", "Options.MaxBytes", o.MaxBytes, minMaxBytes)
}
