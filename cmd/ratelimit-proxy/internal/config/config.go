// Package config is the configuration of the rate-limiting proxy.
//
// [Parse] reads a [Config] from YAML, and [Config.Resolve] fills in the defaults and checks it. Errors are of type
// [*FieldError] and name the line and the field. docs/proxy.md describes the effect of each field.
package config

import (
	"net/netip"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// Config is the configuration of a proxy. The zero value of a field means its default.
type Config struct {
	// Listen lists the addresses to which clients connect. Default: 127.0.0.1:8080.
	Listen []Listener `yaml:"listen"`
	// Admin is the address of /healthz and /metrics. Default: none.
	Admin string `yaml:"admin"`
	// Redis is the URL of the Redis that stores the counters: redis://, rediss:// or unix://.
	// Default: the counters are in memory.
	Redis string `yaml:"redis"`
	// RedisTimeout bounds the wait for Redis. After this time, a rule's OnError applies. Default: 50ms.
	RedisTimeout time.Duration `yaml:"redis_timeout"`
	// Replicas is the number of proxies that share the Redis. See [Rule.OnError]. Default: 1.
	Replicas int `yaml:"replicas"`

	// TrustedProxies lists the addresses of the proxies in front of this one, whose ClientHeader is trusted.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// ClientHeader is the name of the header with the client's address. Default: X-Forwarded-For.
	ClientHeader string `yaml:"client_header"`

	// Upstreams lists the servers behind the proxy, by name.
	Upstreams map[string]Upstream `yaml:"upstreams"`
	// Routes choose the upstream of a request. The first route that matches is used. Default: the only upstream.
	Routes []Route `yaml:"routes"`
	// Rules lists the limits. A request must be allowed by all rules that match it, up to the first rule with Last.
	Rules []Rule `yaml:"rules"`

	Headers  Headers  `yaml:"headers"`
	Status   Status   `yaml:"status"`
	Timeouts Timeouts `yaml:"timeouts"`
	// MaxHeaderBytes bounds the header of a request. Default: 64KiB.
	MaxHeaderBytes Size   `yaml:"max_header_bytes"`
	Memory         Memory `yaml:"memory"`

	source *source // nil for a configuration that was built in Go
}

// Listener is an address that clients connect to. In YAML, it can also be the address alone.
type Listener struct {
	// Address is host:port.
	Address string `yaml:"address"`
	// Cert and Key are PEM files for TLS and HTTP/2, which are reloaded when they change.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ProxyProtocol lists the client addresses whose connections must begin with a PROXY protocol header. Other
	// connections must not.
	ProxyProtocol []netip.Prefix `yaml:"proxy_protocol"`
}

// Upstream is a server behind the proxy.
type Upstream struct {
	// URL begins with http:// or https://. If it has a path, this is put before the request's path.
	URL string `yaml:"url"`
	// Host selects the Host header for the upstream: "client" (as the client sent it, the default) or "upstream" (the
	// URL's host).
	Host string `yaml:"host"`
	// HTTP2 is "cleartext" for HTTP/2 without TLS. Default: HTTP/2 if TLS negotiates it.
	HTTP2 string `yaml:"http2"`
	// CA is a PEM file of certificate authorities. Default: the system's.
	CA string `yaml:"ca"`
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
	// ResponseTimeout bounds the wait for the response's header. Default: 30s.
	ResponseTimeout time.Duration `yaml:"response_timeout"`
	// MaxConnections bounds the number of connections to the upstream. Further requests wait for one. Default: no
	// bound.
	MaxConnections int `yaml:"max_connections"`
}

// Route sends the requests that match to an upstream.
type Route struct {
	Match    Match  `yaml:"match"`
	Upstream string `yaml:"upstream"`
}

// Match is a condition on a request. All fields that are set must match. An empty Match matches every request.
type Match struct {
	// Methods are names such as GET.
	Methods []string `yaml:"methods"`
	// Hosts lists names without a port: "example.com", "[::1]", or "*.example.com" for subdomains.
	Hosts []string `yaml:"hosts"`
	// Paths lists patterns for the cleaned and decoded path: "/users/*/orders", "/my files/**".
	Paths []string `yaml:"paths"`
	// Headers maps the names of request headers to their values. The value "*" matches any value.
	Headers map[string]string `yaml:"headers"`
}

// Rule limits the requests that match.
type Rule struct {
	// Name identifies the rule in headers, logs and metrics: letters, digits, "-" and "_".
	Name  string `yaml:"name"`
	Match Match  `yaml:"match"`
	// Key is a template of {client.ip}, {header.NAME}, {cookie.NAME}, {query.NAME}, {host}, {path} and {method}.
	// Requests with equal keys are counted together. Default: {header.Authorization}.
	Key string `yaml:"key"`
	// Missing applies to a request without a key, or with several. The rule can count it by its address ("address",
	// the default), answer 400 ("reject"), or not limit it ("skip").
	Missing string `yaml:"missing"`
	// Limit is a window, such as 10/60s or 10000/month in Europe/Berlin; see [Rate].
	Limit Rate `yaml:"limit"`
	// Limits replaces Limit if there are several limits, or other algorithms.
	Limits []Limit `yaml:"limits"`
	// Cost is the number of units that a request costs: a number, or "{header.NAME}". Default: 1.
	Cost string `yaml:"cost"`
	// ChargeIf refunds requests whose response does not match. A gcra can only refund a key's last charge. Default: every
	// response matches.
	ChargeIf *ChargeIf `yaml:"charge_if"`
	// Tiers replace the limits for some requests. The first tier that matches is used.
	Tiers []Tier `yaml:"tiers"`
	// OnError applies while Redis doesn't answer. The rule can allow requests ("open"), answer 503 ("closed", the
	// default), or count in this process with the limit Limit/Replicas ("local").
	OnError string `yaml:"on_error"`
	// ResponseHeaders selects the headers that describe the rule's limits: RateLimit and RateLimit-Policy ("draft-10"),
	// X-RateLimit-MaxRequests, -Requests, -Remaining, -TTL and -Reset ("x-ratelimit"), "both" (the default) or "none".
	ResponseHeaders string `yaml:"response_headers"`
	// Shadow tries the rule out: requests that it would deny are allowed, counted and logged.
	Shadow bool `yaml:"shadow"`
	// Allow and Deny list addresses, networks or values of the key (see [Key.Value]). The rule does not limit clients
	// in Allow, and answers clients in Deny with 403. Deny is checked first.
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
	// Last means that the rules after this one don't apply to requests that match this rule.
	Last bool `yaml:"last"`
}

// Limit is one limit of a rule.
type Limit struct {
	// Name distinguishes the limits of a rule. Default: derived from the rate's time.
	Name string `yaml:"name"`
	// Algorithm is window (the default), throttle, buckets, log, stream or gcra.
	Algorithm string `yaml:"algorithm"`
	Rate      Rate   `yaml:"rate"`
	// Burst is the number of units that a gcra allows at once. Default: the rate's number.
	Burst int64 `yaml:"burst"`
	// Interval is the length of a bucket. Default: derived from the rate's time.
	Interval time.Duration `yaml:"interval"`
	// Block denies all requests of a key for the duration For, after the key had After denials.
	Block ratelimit.Block `yaml:"block"`
	// InFlight limits the requests of a key that are in progress. Only a name, a life and a block go with it.
	InFlight int64 `yaml:"in_flight"`
	// Life is the time for which a request in progress counts. Default: 1m.
	Life time.Duration `yaml:"life"`
}

// ChargeIf is a condition on the response to a request.
type ChargeIf struct {
	// Status lists the statuses of the response that match, from 200 to 599.
	Status []int `yaml:"status"`
}

// Tier has other limits for requests that match, and whose key is one of Keys.
type Tier struct {
	Match Match `yaml:"match"`
	// Keys lists the keys to which the tier applies. [Key.Value] describes their form. Default: all keys.
	Keys   []string `yaml:"keys"`
	Limit  Rate     `yaml:"limit"`
	Limits []Limit  `yaml:"limits"`
}

// Headers has switches for request headers.
type Headers struct {
	// Underscores forwards request headers with "_" in their names, which are dropped by default.
	Underscores bool `yaml:"underscores"`
}

// Status configures how clients read the state of their limits. Without Allow and Token, the answer is 404.
type Status struct {
	// Path is the prefix of GET <path>/<key>. Default: /status.
	Path string `yaml:"path"`
	// Allow lists the addresses of clients that may read the status. Default: none.
	Allow []netip.Prefix `yaml:"allow"`
	// Token lets any client that sends it read the status.
	Token string `yaml:"token"`
}

// Timeouts bound how long the proxy waits for clients.
type Timeouts struct {
	// Header bounds reading the header of a request. Default: 10s.
	Header time.Duration `yaml:"header"`
	// Stall bounds how long a client may pause while it sends a request's body. While it receives a response, it may
	// pause up to twice as long. Default: 1m.
	Stall time.Duration `yaml:"stall"`
	// Idle bounds the wait for the next request on a connection. Default: 2m.
	Idle time.Duration `yaml:"idle"`
}

// Memory bounds the counters in memory.
type Memory struct {
	// MaxBytes bounds all counters together, at least 1MiB. A key of a fixed window or a gcra takes about 40 bytes.
	// Default: 128MiB.
	MaxBytes Size `yaml:"max_bytes"`
}
