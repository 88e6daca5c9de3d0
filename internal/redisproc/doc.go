// Package redisproc runs the real redis-server on ports of this machine's own, for as
// long as tests or benchmarks need it: alone, as a node of a Cluster, or as a Sentinel.
// Package redistest is what tests use; redisproc is for programs that have no
// testing.TB.
package redisproc
