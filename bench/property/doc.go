// Package property compares the cost of a request property with other ways to give a request its values. The peers
// are a chain of context.WithValue, a sync.OnceValues for each property of each request, and a map for each
// request with a singleflight group.
//
// Computing the values costs nothing on any side, so only the mechanism is measured. In a real program, a chain of
// context.WithValue would also compute values that no code reads. If a mechanism must be ended after the request,
// like a request of this library with Finish, this is measured, too.
package property
