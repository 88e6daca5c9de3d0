package config

import (
	"cmp"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// The values of [Rule.Missing], [Rule.OnError] and [Rule.ResponseHeaders].
const (
	Address = "address"
	Reject  = "reject"
	Skip    = "skip"

	Open   = "open"
	Closed = "closed"
	Local  = "local"

	Draft10    = "draft-10"
	XRateLimit = "x-ratelimit"
	Both       = "both"
	None       = "none"
)

// Resolve checks the configuration. It returns a copy in which the defaults are filled in, names and hosts have a
// normal form, and Limits replaces Limit. If there are errors, it returns all of them, each as a [*FieldError].
func (c Config) Resolve() (Config, error) {
	c = c.withDefaults()
	check := &checker{c: &c}
	check.config()
	if err := check.err(); err != nil {
		return Config{}, err
	}
	c.normalize()
	return c, nil
}

// withDefaults returns a copy with the defaults of all fields.
func (c Config) withDefaults() Config {
	if len(c.Listen) == 0 {
		c.Listen = []Listener{{Address: "127.0.0.1:8080"}}
	}
	c.RedisTimeout = cmp.Or(c.RedisTimeout, 50*time.Millisecond)
	c.Replicas = cmp.Or(c.Replicas, 1)
	if len(c.TrustedProxies) > 0 {
		c.ClientHeader = cmp.Or(c.ClientHeader, "X-Forwarded-For")
	}
	c.Upstreams = maps.Clone(c.Upstreams)
	for name, u := range c.Upstreams {
		u.Host = cmp.Or(u.Host, "client")
		u.ResponseTimeout = cmp.Or(u.ResponseTimeout, 30*time.Second)
		c.Upstreams[name] = u
		if len(c.Routes) == 0 && len(c.Upstreams) == 1 {
			c.Routes = []Route{{Upstream: name}}
		}
	}
	c.Rules = slices.Clone(c.Rules)
	for i := range c.Rules {
		r := &c.Rules[i]
		r.Key = cmp.Or(r.Key, "{header.Authorization}")
		r.Missing = cmp.Or(r.Missing, Address)
		r.Cost = cmp.Or(r.Cost, "1")
		r.OnError = cmp.Or(r.OnError, Closed)
		r.ResponseHeaders = cmp.Or(r.ResponseHeaders, Both)
	}
	c.Status.Path = cmp.Or(c.Status.Path, "/status")
	c.Timeouts.Header = cmp.Or(c.Timeouts.Header, 10*time.Second)
	c.Timeouts.Stall = cmp.Or(c.Timeouts.Stall, time.Minute)
	c.Timeouts.Idle = cmp.Or(c.Timeouts.Idle, 2*time.Minute)
	c.MaxHeaderBytes = cmp.Or(c.MaxHeaderBytes, 64<<10)
	c.Memory.MaxBytes = cmp.Or(c.Memory.MaxBytes, 128<<20)
	return c
}

// normalize brings a checked configuration into its normal form.
func (c *Config) normalize() {
	c.ClientHeader = textproto.CanonicalMIMEHeaderKey(c.ClientHeader)
	c.Status.Path = strings.TrimSuffix(c.Status.Path, "/")
	c.Routes = slices.Clone(c.Routes)
	for i := range c.Routes {
		c.Routes[i].Match.normalize()
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		r.Match.normalize()
		r.Limit, r.Limits = Rate{}, allLimits(r.Limit, r.Limits)
		r.Tiers = slices.Clone(r.Tiers)
		for j := range r.Tiers {
			t := &r.Tiers[j]
			t.Match.normalize()
			t.Limit, t.Limits = Rate{}, allLimits(t.Limit, t.Limits)
		}
	}
}

// normalize brings hosts and headers into their normal form. It replaces slices and maps and doesn't change them,
// because copies of m share them.
func (m *Match) normalize() {
	hosts := slices.Clone(m.Hosts)
	for i, h := range hosts {
		base, below := strings.CutPrefix(h, "*.")
		hosts[i], _ = ParseHost(base)
		if below {
			hosts[i] = "*." + hosts[i]
		}
	}
	headers := map[string]string{}
	for name, value := range m.Headers {
		name = textproto.CanonicalMIMEHeaderKey(name)
		headers[name] = KeyPart{Kind: "header", Name: name}.Normalize(value)
	}
	m.Hosts, m.Headers = hosts, headers
}

func allLimits(short Rate, full []Limit) []Limit {
	if short != (Rate{}) {
		return []Limit{{Rate: short}}
	}
	return full
}
