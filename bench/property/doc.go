// Package property compares what a request property costs with other ways to give a
// request its values: a chain of context.WithValue, sync.OnceValues per request and
// property, and a map per request with a singleflight group.
//
// The values cost nothing to compute on any side, so that what is measured is what
// stands around them. Where the values are eager, in the chain, computing them would
// come on top. What is ended by its user, as our request is by Finish, is ended.
package property
