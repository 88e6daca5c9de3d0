// Package redispipe runs Lua scripts on Redis for the stores of this library.
//
// Each node has one queue for all calls. With nothing in flight, a call yields the processor a few
// times, so that calls of the same moment join it, and is then sent on its caller's goroutine. While
// a round trip is in flight, calls wait. Once half of the usual number of concurrent calls wait,
// another round trip begins beside it, and otherwise the last one in flight takes them: the pipeline
// grows with the load, and no call waits for a timer. If round trips are long, or one is late, calls
// don't wait. At most four round trips are in flight.
//
// A call is one EVALSHA. Calls of one [Batch] share an EVALSHA that loops over their keys,
// and equal calls of one key are one entry of it.
//
// A [Pipe] differs from go-redis' AutoPipeline in what counters and sessions need:
//
//   - A call's deadline is counted from the moment it is made. It includes dialling, waiting for a
//     connection, loading a Cluster's slots and queueing.
//   - Nothing is sent twice: a lost reply is an error, not a second charge. A call that was never
//     sent, because there was no connection, has an error of its own.
//   - On a Cluster each node has its own queue, so a node that hangs fails only the calls of its
//     own keys.
//
// A client's hooks see the calls only if its ContextTimeoutEnabled is set. Otherwise the calls are
// sent by a copy of the client that heeds deadlines, and such a copy has no hooks.
//
// A Pipe works with a *redis.Client, Sentinel's included, and with a *redis.ClusterClient, where
// the keys of a call must be in one slot.
package redispipe
