// Package redisstore keeps sessions in Redis, so that several servers share them.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redisstore.New(client, redisstore.Options{})
//	m, err := session.New(store, session.Options{})
//
// It takes a *redis.Client (a single server, or Sentinel) or a *redis.ClusterClient, but not a
// *redis.Ring or a wrapper of a client, and needs Redis 6.2 or later. A session is one hash with one field for each field of
// the session, and each operation on it is one script, so that writers of different
// fields never undo each other and nothing brings back a destroyed session. Times
// are the server's. Concurrent calls, of all the stores on one client, share a
// round trip.
//
// A session that is bound to a user has an entry in the user's index, a sorted set of
// its own, often on another node of a Cluster. The entry is written first, so that every
// bound session can be found without a scan; the session itself decides whose it is.
// Destroy, Revoke and RevokeAll drop the entries of the sessions that they remove. A later
// List or RevokeAll drops the entry of a session that has expired or is bound to another
// user. A session ends before its entry does: at the latest by the absolute limit
// under which it was bound. The clocks of a Cluster's nodes must agree within a minute.
//
// A session holds at most [MaxBytes]. Every key has an expiry, and one that lost it gets it
// back with the next touch or save. A longer limit takes effect for a session with its
// next touch; a shorter one at once.
//
// Redis holds only digests of the secrets: its memory, its dump and its replication stream
// cannot be used to log in, but they contain the values, which are not encrypted.
//
// Nothing is sent twice. An error that is not one of package session's means that
// Redis was not asked ([ErrNotSent]: the operation was not done), that no readable reply
// came in time ([ErrNoReply]: it may have been done), or that Redis refused. A Redis whose
// memory is full refuses saves, and loads that are due to touch. If it evicts keys or loses
// writes in a failover, sessions are lost, a session that was destroyed just before may
// exist again, and RevokeAll doesn't find a session whose index or entry was lost.
package redisstore
