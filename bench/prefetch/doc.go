// Package prefetch compares a route that prefetches its properties with the same route
// without, and with one that resolves them in parallel itself. The contenders named lazyreq
// prefetch. It also compares a route that requires a session, a policy and a property with routes that
// require one of them.
package prefetch
