// Package load asks an HTTP server from many connections at once, each of which sends the
// next request when it has the answer, and checks every answer. All of it is one thread
// that waits for all connections: it takes as little as it can of the processors that it
// shares with others. It works on Linux.
package load
