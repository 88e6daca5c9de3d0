// Package faultproxy simulates network faults in front of a TCP server in tests: latency, connections
// that are closed, reset or silent, replies that end in the middle.
//
// A [Proxy] does not know the protocol. It calls the bytes from client to server requests, and the
// others replies.
package faultproxy
