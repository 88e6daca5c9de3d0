package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// FieldError is an error about a field of a [Config].
type FieldError struct {
	// At is the position of the field: file, line and column, or a flag. It is empty if the configuration was built
	// in Go.
	At string
	// Field is the field's path, such as rules[0].key.
	Field string
	Err   error
}

// Error returns the position, the field and the reason.
func (e *FieldError) Error() string {
	if e.At == "" {
		return e.Field + ": " + e.Err.Error()
	}
	return e.At + ": " + e.Field + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// checker checks a configuration, whose defaults are filled in, and collects the errors.
type checker struct {
	c    *Config
	errs []error
}

// add reports an error of a field, unless err is nil.
func (k *checker) add(field string, err error) {
	if err == nil {
		return
	}
	if wrong, ok := errors.AsType[*option.Error](err); ok { // this error contains the field's name in Go, which add leaves out
		err = errors.New(wrong.Reason)
	}
	e := &FieldError{Field: field, Err: err}
	e.At = k.c.source.at(field)
	k.errs = append(k.errs, e)
}

func (k *checker) addf(field, format string, args ...any) { k.add(field, fmt.Errorf(format, args...)) }

func (k *checker) err() error { return errors.Join(k.errs...) }

func (k *checker) oneOf(field, got string, want ...string) {
	if !slices.Contains(want, got) {
		k.addf(field, "%q, want %s", got, strings.Join(want, ", "))
	}
}

// between reports an error if a number or a duration is not between low and high.
func between[T int | int64 | Size | time.Duration](k *checker, field string, got, low, high T) {
	if got < low || got > high {
		k.addf(field, "is %v, want %v to %v", got, low, high)
	}
}

const (
	minTimeout = time.Microsecond
	maxTimeout = 24 * time.Hour
)

func (k *checker) config() {
	c := k.c
	k.listeners()
	k.redis()
	between(k, "replicas", c.Replicas, 1, 1<<20)
	between(k, "redis_timeout", c.RedisTimeout, minTimeout, time.Hour)
	k.clients()
	k.routes()
	k.rules()
	k.status()
	between(k, "timeouts.header", c.Timeouts.Header, minTimeout, maxTimeout)
	between(k, "timeouts.stall", c.Timeouts.Stall, minTimeout, maxTimeout)
	between(k, "timeouts.idle", c.Timeouts.Idle, minTimeout, maxTimeout)
	between(k, "max_header_bytes", c.MaxHeaderBytes, 1, 64<<20)
	between(k, "memory.max_bytes", c.Memory.MaxBytes, 1<<20, 1<<50)
}

func (k *checker) listeners() {
	taken := map[string]string{}
	check := func(field, address string) {
		_, port, err := net.SplitHostPort(address)
		if err != nil || port != "0" && !validPort(port) {
			k.addf(field, "%q is not an address to listen on, want one such as 127.0.0.1:8080", address)
		}
		if other := taken[address]; other != "" && port != "0" {
			k.addf(field, "%q is also the address of %s", address, other)
		}
		taken[address] = field
	}
	for i, l := range k.c.Listen {
		field := fmt.Sprintf("listen[%d]", i)
		check(field+".address", l.Address)
		if (l.Cert == "") != (l.Key == "") {
			k.addf(field, "needs both cert and key, or neither")
		}
	}
	if k.c.Admin != "" {
		check("admin", k.c.Admin)
	}
}

// validPort reports whether port is the number or the name of a TCP port other than 0.
func validPort(port string) bool {
	n, err := net.LookupPort("tcp", port)
	return err == nil && n > 0
}

// CheckFiles reads the certificates of all listeners and returns an error for each one that can't be used. Resolve
// doesn't read these files.
func (c Config) CheckFiles() error {
	k := &checker{c: &c}
	for i, l := range c.Listen {
		if l.Cert == "" || l.Key == "" {
			continue
		}
		if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
			k.addf(fmt.Sprintf("listen[%d].cert", i), "%s, key %s: %w", l.Cert, l.Key, err)
		}
	}
	return k.err()
}

func (k *checker) redis() {
	if k.c.Redis == "" {
		return
	}
	const want = "want a URL such as redis://127.0.0.1:6379/0"
	if o, err := redis.ParseURL(k.c.Redis); err != nil {
		k.addf("redis", "is not the URL of a Redis, %s: %s", want, strings.Trim(strings.TrimPrefix(withoutURL(err).Error(), "redis:"), ": "))
	} else if o.DB < 0 {
		k.addf("redis", "names the database %d, %s", o.DB, want)
	}
}

func (k *checker) clients() {
	c := k.c
	k.header("client_header", c.ClientHeader)
	switch {
	case c.ClientHeader != "" && !isToken(c.ClientHeader):
		k.addf("client_header", "%q is not the name of a header", c.ClientHeader)
	case c.ClientHeader != "" && len(c.TrustedProxies) == 0:
		k.addf("client_header", "is %q, but trusted_proxies is empty", c.ClientHeader)
	default:
		_, err := ratelimit.IPOptions{TrustedProxies: c.TrustedProxies, Header: c.ClientHeader}.Key()
		k.add("trusted_proxies", err)
	}
}

func (k *checker) routes() {
	c := k.c
	for name, u := range c.Upstreams {
		k.upstream(u, "upstreams."+name)
	}
	if len(c.Upstreams) == 0 {
		k.addf("upstreams", "there are none: requests go nowhere")
	} else if len(c.Routes) == 0 {
		k.addf("routes", "there are none, but more than one upstream")
	}
	for i, r := range c.Routes {
		field := fmt.Sprintf("routes[%d]", i)
		if _, ok := c.Upstreams[r.Upstream]; !ok {
			k.addf(field+".upstream", "there is no upstream %q", r.Upstream)
		}
		k.match(r.Match, field+".match")
		hides := func(other Route) bool { return other.Match.covers(r.Match) }
		if n := slices.IndexFunc(c.Routes[:i], hides); n >= 0 {
			k.addf(field, "is never used: routes[%d] matches all its requests", n)
		}
	}
}

// status checks [Status].
func (k *checker) status() {
	s := k.c.Status
	u, err := url.ParseRequestURI(s.Path)
	if err != nil || u.EscapedPath() != s.Path || strings.Trim(s.Path, "/") == "" {
		k.addf("status.path", "%q, want a path such as /status", s.Path)
	}
	k.add("status.token", checkFieldValue(s.Token))
	for i, network := range s.Allow {
		k.network(network, fmt.Sprintf("status.allow[%d]", i))
	}
}

// header reports an error if requests never have this header when rules are applied to them.
func (k *checker) header(field, name string) {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Host", "Transfer-Encoding", "Trailer": // net/http removes these from r.Header
		k.addf(field, "the header %s can't be matched or counted by (for the host, use hosts or {host})", name)
	}
	if isToken(name) && !ForwardedName(name, k.c.Headers.Underscores) {
		k.addf(field, "the header %s is dropped from requests, since its name has other characters than letters, digits and - (see headers.underscores)", name)
	}
}

// ForwardedName reports whether the proxy passes on request headers with this name. It may have only letters, digits
// and "-", and "_" if underscores is set. CGI programs read X_Real_IP as X-Real-IP.
func ForwardedName(name string, underscores bool) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_' && underscores:
		default:
			return false
		}
	}
	return true
}
