// Package redisproc runs the real redis-server on a free port of this machine,
// without persistence, for as long as tests or benchmarks need it. Package redistest
// is what tests use; redisproc is for programs that have no testing.TB.
package redisproc
