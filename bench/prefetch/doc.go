// Package prefetch compares three routes: a route that prefetches its properties, the same route without a
// prefetch, and a route whose handler resolves the properties in parallel. The contenders named lazyreq prefetch.
// The suite also compares a route that requires a session, a policy and a property with routes that require only
// one of them.
package prefetch
