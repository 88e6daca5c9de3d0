// Package redispipe runs Lua scripts on Redis for the stores of this library.
//
// All calls on one node meet in one queue. While nothing is in flight, a call yields the
// processor a few times, so that calls of the same moment join it, and then goes out on its
// caller's goroutine. While a round trip is in flight, calls wait, and the next trip takes all of
// them: under load the pipeline grows by itself, and no call waits for a timer. If round trips are
// long, or one is late, up to four go side by side.
//
// A call is one EVALSHA. Calls of one [Batch] share an EVALSHA that loops over their keys,
// and equal calls of one key are one entry of it.
//
// A [Pipe] differs from go-redis' AutoPipeline in what counters and sessions need:
//
//   - A call's deadline begins when the call is made. Dialling, waiting for a connection,
//     loading a Cluster's slots and queueing count.
//   - Nothing is sent twice: a lost reply is an error, not a second charge.
//   - On a Cluster each node has its own queue, so that a node which hangs fails the calls of
//     its own keys only.
//
// A client's hooks see the calls only if its ContextTimeoutEnabled is set. Otherwise a Pipe has
// them sent by a copy of the client that heeds deadlines, and such a copy has no hooks.
//
// It works with a *redis.Client, Sentinel's included, and with a *redis.ClusterClient, where
// the keys of a call must be in one slot.
package redispipe
