// Package proxy is a rate-limiting reverse proxy: package ratelimit in front of any server.
//
// [New] makes a [Proxy] from a configuration of package config. It is an [http.Handler] whose
// configuration [Proxy.Reload] replaces while it serves requests. [Proxy.Server] serves it with
// timeouts, a graceful stop and the PROXY protocol. The program ratelimit-proxy adds only its command line.
//
// The rules of a request are its lazy properties. A request that no rule matches doesn't call
// the store, and all rules that match share one round trip to Redis.
//
// The configuration alone chooses the upstream: neither the Host nor the URL that a client
// sends can make the proxy connect elsewhere. Bodies are streamed in both directions.
// Websockets are passed on; other upgrades are refused. The proxy doesn't cache, compress,
// balance load or authenticate.
package proxy
