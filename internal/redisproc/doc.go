// Package redisproc runs the real redis-server on reserved ports of this machine: alone, as a node of a
// Cluster, or as a Sentinel. Tests use package redistest; redisproc is for programs without a
// testing.TB.
package redisproc
