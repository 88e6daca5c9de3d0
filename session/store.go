package session

import (
	"context"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Store keeps sessions. Packages memstore and redisstore implement it. Package storage has the types and errors of its
// methods, and package storetest tests implementations.
//
// Package session has checked the arguments. All methods are safe for concurrent use and use the store's own clock. If
// ctx has ended before a method begins, the method returns the context's error and has no effect. A session whose limits
// have passed counts as missing. The time that a comparison of digests takes reveals nothing about the secret. Errors
// never contain a locator, a digest, a user or a value.
//
// Load, Commit and Destroy are atomic. List and Revoke need not be: they cover every session that was bound to the
// user before they began. A session that is bound while they run may be missing.
type Store interface {
	// Load returns the session at l, or ErrNotFound. The call also touches the session if Limits.Touch has passed
	// since it was last touched. A touch records Limits.Device. If the digest was replaced and is in its grace
	// period, Record.Old is true, and Load does not touch the session.
	Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error)

	// Commit creates or changes a session, and touches it. It makes all changes of the delta or none. It leaves
	// other fields alone, so that writers of different fields never undo each other. It returns ErrExists if it
	// should create a session that exists, ErrGone if the session to change is missing or has another digest, and
	// ErrConflict if an expectation is not met. It never brings back a session.
	//
	// With Delta.MaxPerUser, Commit also ends other sessions. It may do this first, and then fail. Of concurrent
	// commits for a user, some may end their own session and return ErrGone. When a commit has succeeded, at most
	// MaxPerUser sessions of the user can be loaded, besides those of commits that have not returned or have failed.
	Commit(ctx context.Context, d storage.Delta) error

	// Destroy removes the session at l. It returns nil if there is none. It returns ErrGone, and removes nothing,
	// if the session has another digest.
	Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error

	// List returns the sessions that are bound to user, in any order, and touches none.
	List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error)

	// Revoke removes those sessions of user for whose locators match returns true, and returns their number.
	// match is fast and does not call the store. After an error, some of the sessions may be left.
	Revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error)
}
