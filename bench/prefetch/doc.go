// Package prefetch compares a route that prefetches its properties with the same route
// without, and with one that resolves them in parallel itself. The contenders named lazyreq
// prefetch.
package prefetch
