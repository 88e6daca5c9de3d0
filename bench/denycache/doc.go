// Package denycache compares what denials cost: with a cache of them and without, and with
// rate-limiter-flexible on Node, with its in-memory block and without. All have a fixed
// window of 5 units a second in one Redis, for each of 5 keys, and 50 calls in flight.
//
// The cases are calls in process, and the same behind HTTP with the load of hey. What is
// admitted is known: all keys are asked for without a pause, so that a window begins
// when the one before ends, and a round of 2.5 s has three.
package denycache
