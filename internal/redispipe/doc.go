// Package redispipe runs Lua scripts on Redis for the stores of this library. A [Pipe] works with a *redis.Client,
// including those of Sentinel, and with a *redis.ClusterClient, where all keys of a call must be in one slot.
//
// Each node has a queue for all calls. If no round trip is in flight, a call yields the processor a few times, so
// that calls of the same moment can join it. It is then sent on its caller's goroutine. While a round trip is in
// flight, other calls wait. When half of the usual number of concurrent calls wait, another round trip begins
// beside the first. Otherwise, the last round trip in flight takes the waiting calls when it ends. If round trips
// are long, or a round trip is late, calls do not wait. No timer delays a call. At most four round trips are in
// flight.
//
// A call is one EVALSHA. Calls of one [Batch] share an EVALSHA, whose script loops over their keys. Equal calls
// for the same key can share an entry.
//
// go-redis' AutoPipeline does not give the guarantees that counters and sessions need:
//
//   - A call's timeout begins when the call is made. It includes dialing, waiting for a connection, loading a Cluster's
//     slots and queueing.
//   - Nothing is sent twice. A lost reply is an error, not a second charge. A call that was not sent, for example
//     because there was no connection, has a different error.
//   - On a Cluster, each node has its own queue. A node that hangs fails only the calls for its own keys.
//
// A client's hooks see the calls only if the client's ContextTimeoutEnabled is set. Otherwise, the calls are sent with
// a copy of the client that has this option, and the copy has no hooks.
package redispipe
