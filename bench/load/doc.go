// Package load sends requests to an HTTP server on many connections at the same time, and checks every response.
// Each connection sends its next request when it has received a response. A single thread waits for all
// connections, so that the load takes little processor time. The package works on Linux.
package load
