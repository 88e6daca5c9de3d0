// Package denycache compares the cost of denials, with and without a cache of denials. The peer is
// rate-limiter-flexible on Node, with and without its in-memory block. All use a fixed window of 5 units a second
// for each of 5 keys in one Redis, with 50 concurrent calls.
//
// The suite measures calls in the process, and HTTP servers under the load of hey. The number of units that must
// be admitted is known: all keys are used without a pause, so each window begins when the last one ends, and a
// round of 2.5 s has three windows.
package denycache
