// Package delay adds latency between a client and a server.
package delay
