package proxy

import "time"

// Config is what a proxy does, as one writes it in YAML. The zero value of a field is its
// default. [Parse] reads one, [New] and [Proxy.Reload] check it.
type Config struct {
	// Listen is where clients come in. Unused by [Proxy], but for being checked. Default of
	// the program: 127.0.0.1:8080.
	Listen []Listener `yaml:"listen"`
	// Admin is the address of /healthz and /metrics. Default: none.
	Admin string `yaml:"admin"`
	// Redis is the URL of the Redis that has the counters: redis://, rediss:// or
	// unix://. Default: the counters are in memory.
	Redis string `yaml:"redis"`
	// RedisTimeout is how long a request waits for it, before a rule's OnError says how the
	// request goes on. Default: 50ms.
	RedisTimeout time.Duration `yaml:"redis_timeout"`
	// Replicas is how many proxies share it: without it, each allows so much less by the
	// rules whose OnError is local. Default: 1.
	Replicas int `yaml:"replicas"`

	// TrustedProxies are the addresses of proxies in front of this one, and of nobody
	// else. What they write into ClientHeader is believed.
	TrustedProxies []Network `yaml:"trusted_proxies"`
	// ClientHeader is where they tell the client's address. Default: X-Forwarded-For.
	ClientHeader string `yaml:"client_header"`

	// Upstreams are the servers behind the proxy, by name.
	Upstreams map[string]Upstream `yaml:"upstreams"`
	// Routes say which upstream answers. The first that matches does; a request that none
	// matches is answered 404. Default: everything goes to the only upstream.
	Routes []Route `yaml:"routes"`
	// Rules are the limits. All that match a request have to allow it, up to the first of
	// them that is marked last.
	Rules []Rule `yaml:"rules"`

	Headers Headers `yaml:"headers"`
	Status  Status  `yaml:"status"`
	Limits  Limits  `yaml:"limits"`
	Memory  Memory  `yaml:"memory"`

	source *source // nil if it isn't from a file
}

// Listener is an address that clients connect to.
type Listener struct {
	// Address is host:port.
	Address string `yaml:"address"`
	// Cert and Key are PEM files; with them, the listener speaks TLS and HTTP/2. They are
	// read again when they change.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ProxyProtocol says that connections from these addresses begin with a PROXY protocol
	// header (version 1 or 2), which tells the client's address. Others must not send one.
	ProxyProtocol []Network `yaml:"proxy_protocol"`
}

// UnmarshalYAML takes the address alone, too.
func (l *Listener) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&l.Address) == nil {
		return nil
	}
	type plain Listener
	return unmarshal((*plain)(l))
}

// Upstream is a server behind the proxy.
type Upstream struct {
	// URL is http:// or https://, with an optional path that goes before the request's.
	URL string `yaml:"url"`
	// Host is the Host that the upstream gets. Default: the one that the client sent;
	// "upstream" is the URL's.
	Host string `yaml:"host"`
	// HTTP2 without TLS ("cleartext"), never ("off"), or where TLS offers it (default).
	HTTP2 string `yaml:"http2"`
	// CA is a PEM file of the authorities that sign the upstream's certificate. Default:
	// the system's.
	CA string `yaml:"ca"`
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
	// ProxyProtocol sends the client's address in a PROXY protocol header of version 1 or
	// 2. A connection then carries one request: it is somebody's.
	ProxyProtocol int `yaml:"proxy_protocol"`
	// DialTimeout bounds connecting, TLS included. Default: 5s.
	DialTimeout time.Duration `yaml:"dial_timeout"`
	// ResponseTimeout bounds the wait for the response's header, after the request was
	// sent. Default: 30s.
	ResponseTimeout time.Duration `yaml:"response_timeout"`
	// IdleConnections are how many are kept for the next requests. Default: 512.
	IdleConnections int `yaml:"idle_connections"`
	// MaxConnections bounds the connections, 0 does not. Requests beyond wait.
	MaxConnections int `yaml:"max_connections"`
}

// Route says which requests an upstream answers.
type Route struct {
	Match    Match  `yaml:"match"`
	Upstream string `yaml:"upstream"`
}

// Match is a condition on a request. What is empty matches everything; all that is set
// must match.
type Match struct {
	// Methods are names such as GET.
	Methods []string `yaml:"methods"`
	// Hosts are names without port, such as "example.com", "[::1]" or "*.example.com",
	// which doesn't match example.com itself.
	Hosts []string `yaml:"hosts"`
	// Paths are patterns. A "*" is one segment, "**" at the end any number of them, and
	// all else is itself: "/users/*/orders", "/api/**". What is matched is the path in
	// its shortest form, decoded, as a server would take it. A request whose path some
	// servers take for another one, which matches differently, is answered 400.
	Paths []string `yaml:"paths"`
	// Headers are the values of request headers by name; "*" is any value.
	Headers map[string]string `yaml:"headers"`
}

// Rule is a limit for the requests that match.
type Rule struct {
	// Name tells the rule from others in headers, logs and metrics: letters, digits, "-"
	// and "_".
	Name  string `yaml:"name"`
	Match Match  `yaml:"match"`
	// Key is what requests are counted by, a template of {client.ip}, {header.NAME},
	// {cookie.NAME}, {query.NAME}, {host}, {path} and {method}. Of headers, cookies and
	// query parameters, which may be credentials, only hashes are kept. Default:
	// {header.Authorization}.
	Key string `yaml:"key"`
	// Missing says what happens to a request that the key finds nothing in: it is counted
	// by its address ("address", the default), answered 400 ("reject"), or not limited by
	// this rule ("skip"). A header or query parameter that is there twice is none.
	Missing string `yaml:"missing"`
	// Limit is a limit in short, such as 10/60s: a fixed window.
	Limit Rate `yaml:"limit"`
	// Limits are limits in full; all of them have to allow a request.
	Limits []Limit `yaml:"limits"`
	// Cost is how many units a request costs: a number, or "{header.NAME}" of a request
	// header with one, which is 1 if it is missing. Default: 1.
	Cost string `yaml:"cost"`
	// Tiers are other limits for some. The first that matches counts.
	Tiers []Tier `yaml:"tiers"`
	// OnError says what happens when the store of the counters can't be asked: requests
	// pass ("open"), are answered 503 ("closed", the default), or are limited by what this
	// process alone has seen ("local").
	OnError string `yaml:"on_error"`
	// Shadow only tries the rule out: what it would deny passes, and is logged and counted.
	Shadow bool `yaml:"shadow"`
	// Allow and Deny are who isn't limited, and who is answered 403 instead: addresses
	// ("192.0.2.7", "10.0.0.0/8") of clients, or values of the key. Deny comes first, and
	// takes any value of a header or the like that is there several times.
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
	// Last says that no rule after this one is asked if this one matches.
	Last bool `yaml:"last"`
}

// Limit is a limit in full.
type Limit struct {
	// Name tells it from others of the rule. It can be empty if it is the only one.
	Name string `yaml:"name"`
	// Algorithm is window (the default), buckets, log, stream, gcra or throttle.
	Algorithm string `yaml:"algorithm"`
	Rate      Rate   `yaml:"rate"`
	// Burst is how many units of a gcra can pass at once. Default: those of the rate.
	Burst int64 `yaml:"burst"`
	// Interval is the length of a bucket. Default: a twelfth of the rate's time.
	Interval time.Duration `yaml:"interval"`
	Block    Block         `yaml:"block"`
}

// Block shuts a key out.
type Block struct {
	// After so many denials.
	After int `yaml:"after"`
	// For so long.
	For time.Duration `yaml:"for"`
}

// Tier is other limits for requests that match and whose key has one of the values.
type Tier struct {
	Match Match `yaml:"match"`
	// Keys are values of the key. Default: any.
	Keys   []string `yaml:"keys"`
	Limit  Rate     `yaml:"limit"`
	Limits []Limit  `yaml:"limits"`
}

// Headers say what clients are told. The fields RateLimit-Policy and RateLimit, and
// Retry-After with a denial, are always sent.
type Headers struct {
	// Seed are X-RateLimit-MaxRequests, -Requests, -Remaining, -TTL (in seconds) and -Reset
	// (Unix time) of the rule with the least left. Default: true. If the upstream sends any
	// of them, its own stay, and ours are left out.
	Seed *bool `yaml:"seed"`
	// Forwarded adds a Forwarded field (RFC 7239) for the upstream. Without it, one that a
	// trusted proxy has sent is still carried on.
	Forwarded bool `yaml:"forwarded"`
	// Underscores keeps request headers with "_" in their names. Without it they are dropped,
	// as those with other signs than letters, digits and "-" always are: a server that hands
	// them on as CGI does takes X_Real_IP for X-Real-IP.
	Underscores bool `yaml:"underscores"`
}

// Status is how one asks how much is used up, without charging or reaching an upstream. It
// answers 404 without Allow and Token, and otherwise 403 to those that neither is for.
type Status struct {
	// Path is where GET <path>/<key> answers. Default: /status; "off" is nowhere.
	Path string `yaml:"path"`
	// Header lets a request with X-RateLimit-Status: true (or yes, 1) ask about itself, and
	// has values other than these and false, no, 0 answered 400. Default: true.
	Header *bool `yaml:"header"`
	// Allow are the addresses of clients that are answered, unless somebody who is no
	// trusted proxy has forwarded the request. Behind a proxy on this machine that forwards
	// without saying so, all clients have this machine's address. Default: none.
	Allow []Network `yaml:"allow"`
	// Token is answered everywhere, as Authorization: Bearer <token> at the path, and as
	// X-RateLimit-Token with the header.
	Token string `yaml:"token"`
}

// Limits bound what clients can make the proxy wait for and hold.
type Limits struct {
	// Header bounds the reading of a request's header. Default: 10s.
	Header time.Duration `yaml:"header"`
	// Stall bounds how long a client may send nothing in the middle of a body, and twice
	// that how long it may take nothing. Default: 1m.
	Stall time.Duration `yaml:"stall"`
	// Idle bounds the wait for the next request on a connection. Default: 2m.
	Idle time.Duration `yaml:"idle"`
	// HeaderBytes bounds a request's header. Default: 64 KiB.
	HeaderBytes Size `yaml:"header_bytes"`
}

// Memory bounds the counters in memory.
type Memory struct {
	// MaxBytes is for all counters: a key of a fixed window or a gcra takes about 40 bytes, one
	// of other algorithms more. When they are full, those make room that are nearest to
	// their full quota. When it changes, they begin anew. At least 1 MiB. Default: 128 MiB.
	MaxBytes Size `yaml:"max_bytes"`
}
