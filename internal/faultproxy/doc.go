// Package faultproxy puts faults of the network in front of a TCP server in tests:
// latency, connections that are cut, reset or silent, replies that end in the middle.
//
// A [Proxy] knows nothing of the protocol. What goes from client to server is a request
// to it, what comes back a reply.
package faultproxy
