// Package redisstore keeps sessions in Redis, so that several servers share them.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redisstore.New(client, redisstore.Options{})
//	m, err := session.New(store, session.Options{})
//
// It takes every redis.UniversalClient (a single server, Sentinel, Cluster) and
// needs Redis 6.2 or later. A session is one hash with one field for each field of
// the session, and each operation on it is one script, so that writers of different
// fields never undo each other and nothing brings back what was destroyed. Times
// are the server's. Calls of one moment, of all the stores on one client, share a
// round trip.
//
// A session that is bound to a user has an entry in the user's index, a sorted set of
// its own, often on another node of a Cluster. It is written first, so that every
// bound session can be found without a scan; what it says besides is checked against
// the session. Destroy, Revoke and RevokeAll drop the entries of what they remove; that
// of a session that expires, or is bound to another user, is left to a later List or
// RevokeAll. A session ends before its entry does: at the latest by the absolute limit
// under which it was bound. The clocks of a Cluster's nodes must agree within a minute.
//
// A session holds at most MaxBytes. Redis drops what is over by itself: every key
// has an expiry, and one that lost it gets it back with the next touch or save. A
// limit that was made longer counts for a session from its next touch on; one that
// was made shorter counts at once.
//
// Redis holds only digests of the secrets: who reads its memory, its dump or its
// replication stream cannot log in, but sees the values, which are not encrypted.
//
// Nothing is sent twice. An error that is not one of package session's says that
// Redis was not asked in time (ErrNotSent: the operation was not done), that it did not
// reply in time (ErrNoReply: it may have been done), or that it refused. A Redis whose
// memory is full refuses saves, and loads that are due to touch. If it evicts keys or loses
// writes in a failover, sessions go, a session that was destroyed just before may be back,
// and one whose index or entry went is not found when all of its user's are revoked.
package redisstore
