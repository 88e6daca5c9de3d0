package session

import (
	"context"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Store keeps sessions. Packages memstore and redisstore implement it. Package storage has the types and errors of
// its methods, and package storetest tests implementations.
//
// All methods are safe for concurrent use, return the context's error without
// effect if ctx has ended before they begin, and use the store's own clock. A
// session whose limits have passed counts as missing. The time of a comparison of digests
// reveals nothing about the secret. Errors never contain a locator, a digest, a user or a
// value.
//
// Load, Commit, Destroy and Revoke are atomic. List and RevokeAll need not be: they
// cover every session that was bound to the user before they began, and may or may
// not cover one that is bound while they run.
type Store interface {
	// Load returns the session at l, or ErrNotFound. It counts as use: a session
	// that was last touched Limits.Touch ago or longer is touched, in the same call. For a
	// digest that was replaced within its grace the record is Old, and nothing is touched.
	Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error)

	// Commit creates a session or changes one, all or nothing, and touches it. It
	// changes only the fields of the delta, so that writers of different
	// fields never undo each other. It never creates over an existing session
	// (ErrExists), never changes or brings back one that is gone or has another digest
	// (ErrGone), and changes nothing if an expectation fails (ErrConflict).
	Commit(ctx context.Context, d storage.Delta) error

	// Destroy removes the session at l. It returns nil if there is none, and ErrGone,
	// removing nothing, if the session has another digest.
	Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error

	// List returns the sessions that are bound to user, in no particular order. It
	// doesn't touch them.
	List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error)

	// Revoke removes the session at l if it is bound to user, and nothing otherwise.
	Revoke(ctx context.Context, user string, l storage.Locator) error

	// RevokeAll removes the sessions that are bound to user, but not the one at
	// except, and returns how many there were. After an error some may be left.
	RevokeAll(ctx context.Context, user string, except storage.Locator) (int, error)
}
