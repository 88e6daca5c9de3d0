// Package redispipe runs Lua scripts on Redis for the stores of this library.
// Calls of one moment share a round trip, and those of one script also share one
// EVALSHA.
//
// One call when nothing is under way goes out at once. While as many round trips
// are under way as are allowed, callers queue, and the next one takes all of
// them along: under load the pipeline grows by itself, and without load nobody
// waits for company. There are no timers.
//
// Most of what a short script costs Redis is not the script: it is to read a command,
// to make Lua's tables of it, to write a reply. So a [Script] is written to run any
// number of calls, each with its own keys. On a Cluster only those in one slot are
// joined.
//
// A [Pipe] differs from go-redis' AutoPipeline in what a store of counters and
// sessions needs: a caller's own context counts all the way, no script is ever sent
// twice (a lost reply is an error, not a second charge), and a Redis that does not
// answer is noticed within a deadline of its own, whatever the client's timeouts.
//
// It works with every redis.UniversalClient: single, Sentinel and Cluster, where
// each call's keys must be in one slot.
package redispipe
