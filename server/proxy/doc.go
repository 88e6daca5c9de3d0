// Package proxy is a reverse proxy that limits how much its clients may ask for: package
// ratelimit in front of any server.
//
// A [Config] says which upstreams there are, which requests go to which, and which rules
// limit them; [Parse] reads one from YAML. [New] makes a [Proxy] of it, an [http.Handler]
// whose configuration can be changed with [Proxy.Reload] while it works. The program
// ratelimit-proxy is little more than that.
//
// The rules of a request are its lazy properties. One that no rule matches costs no call
// of the store; one that several match is asked about by all in one round trip.
//
// An upstream is chosen by the configuration alone: neither the Host nor the URL that a
// client sends can make the proxy connect to somewhere else. Bodies are streamed, in both
// directions, and websockets are passed on; other upgrades are refused.
package proxy
