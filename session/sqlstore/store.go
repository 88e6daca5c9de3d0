// Package sqlstore keeps sessions in a PostgreSQL or SQLite database, for applications that have a database and no
// Redis.
//
//	db, err := sql.Open("pgx", "postgres://localhost/app")
//	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.PostgreSQL})
//	m, err := session.New(store, session.Options{})
//
// The application imports the driver and creates the table with the statements of [Schema]. A session is one row. A
// change locks the row, so that no write is lost and nothing brings back a destroyed session. Times are those of the
// database.
//
// PostgreSQL 13 and SQLite 3.35, or later, are supported. In PostgreSQL, the default isolation of transactions must be
// READ COMMITTED, as in a new database: with others, concurrent calls can fail. A SQLite database needs a busy timeout,
// because it has only one writer at a time, and should be in WAL mode, in which readers do not wait for the writer.
//
// The table holds only digests of the secrets. It also holds the values, which are not encrypted. Expired sessions
// count as missing, and stay in the table until the application calls [Store.DeleteExpired].
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/storage"
)

// MaxBytes bounds the size of a session: the bytes of the names and values of its fields, and 64 more for each. A
// Commit that would exceed it fails with [storage.ErrTooLarge], unless it makes the session smaller.
const MaxBytes = 1 << 20

const bytesPerField = 64

// Options configure a [Store].
type Options struct {
	// Dialect is the kind of the database. It is required.
	Dialect Dialect
	// Table is the name of the table: at most 40 lower-case letters, digits and "_". Default: "sessions".
	Table string
	// Timeout limits the duration of each operation, including the wait for a connection. Default: 5 s.
	Timeout time.Duration
}

// Store is a session.Store in a database. It is safe for concurrent use and needs no closing.
//
// Load costs one statement, and a second one if it touches the session. Commit and Destroy are transactions of two
// statements, or of four with Delta.MaxPerUser. List costs one statement, and Revoke one more for each session that it
// removes. All of them read and write whole sessions.
type Store struct {
	db        *sql.DB
	timeout   time.Duration
	isolation sql.IsolationLevel
	stmt      statements
}

// New returns a store in db. The caller closes db. New does not connect to the database; see [Store.Check]. It returns
// an error if db is nil or an option is invalid.
func New(db *sql.DB, o Options) (*Store, error) {
	o.Table = cmp.Or(o.Table, defaultTable)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: New: db is nil")
	case o.Dialect != PostgreSQL && o.Dialect != SQLite:
		return nil, option.Errorf("sqlstore", "Options.Dialect", "is %d, want PostgreSQL or SQLite", o.Dialect)
	case !tableName.MatchString(o.Table):
		return nil, option.Errorf("sqlstore", "Options.Table", "is %q, want %v", o.Table, tableName)
	case o.Timeout < 0:
		return nil, option.Errorf("sqlstore", "Options.Timeout", "is %v, want 0s or more", o.Timeout)
	}
	s := &Store{db: db, timeout: o.Timeout, stmt: newStatements(o.Dialect, o.Table)}
	if o.Dialect == PostgreSQL {
		s.isolation = sql.LevelReadCommitted // a lock waits for other writers, and does not fail because of them
	}
	return s, nil
}

// Check returns an error if the table cannot be read, for example because it does not exist or lacks a column. Call it
// when the application starts: its error has the database's text. Errors of other methods do not have this text, because
// it could contain a user or a value.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := scanRow(s.db.QueryRowContext(ctx, s.stmt.load, []byte{}))
	return err
}

// Load implements session.Store.
func (s *Store) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := scanRow(s.db.QueryRowContext(ctx, s.stmt.load, l[:]))
	if err != nil || r == nil {
		return storage.Record{}, cmp.Or(wrap(ctx, "load", err), storage.ErrNotFound)
	}
	rec := r.record()
	switch {
	case r.expired(lim):
		return storage.Record{}, storage.ErrNotFound
	case r.old.Equal(d) && r.now < r.oldUntil:
		rec.Old = true
		return rec, nil
	case !r.digest.Equal(d):
		return storage.Record{}, storage.ErrNotFound
	case r.now-r.touched < lim.Touch.Microseconds():
		return rec, nil
	}
	rec.Device = lim.DeviceOf(r.user, r.device)
	// Another call may have touched, changed or removed the session. Then this call does not touch it, but still returns
	// the session as it was when it was read.
	_, err = s.db.ExecContext(ctx, s.stmt.touch, l[:], r.touched, r.digest[:], r.now, r.end(lim), []byte(rec.Device))
	if err != nil {
		return storage.Record{}, wrap(ctx, "touch", err)
	}
	rec.Touched = time.UnixMicro(r.now)
	return rec, nil
}

// Commit implements session.Store.
func (s *Store) Commit(ctx context.Context, d storage.Delta) error {
	return s.change(ctx, "commit", d, func(ctx context.Context, tx *sql.Tx, r *row) error {
		gone := r == nil || r.expired(d.Limits)
		switch {
		case d.Create && !gone:
			return storage.ErrExists
		case d.Create:
			return s.create(ctx, tx, d, r != nil)
		case gone || !r.digest.Equal(d.Digest):
			return storage.ErrGone
		}
		return s.update(ctx, tx, d, r)
	})
}

// create inserts a session. If an expired one has the locator, create removes it first.
func (s *Store) create(ctx context.Context, tx *sql.Tx, d storage.Delta, expired bool) error {
	fields, err := apply(d, nil)
	if err != nil {
		return err
	}
	if expired {
		if _, err := tx.ExecContext(ctx, s.stmt.remove, d.Locator[:]); err != nil {
			return err
		}
	}
	lim := d.Limits.For(d.Remember)
	life := min(lim.Idle, lim.Absolute).Microseconds()
	done, err := tx.ExecContext(ctx, s.stmt.insert, d.Locator[:], d.Digest[:], life, []byte(d.Bind), d.Remember,
		[]byte(d.Limits.DeviceOf(d.Bind, "")), encode(fields))
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 { // another call has created the session
		return cmp.Or(err, storage.ErrExists)
	}
	return nil
}

// update changes the session in r, which is locked.
func (s *Store) update(ctx context.Context, tx *sql.Tx, d storage.Delta, r *row) error {
	fields, err := apply(d, r.fields)
	if err != nil {
		return err
	}
	if d.Rotate != (storage.Digest{}) {
		r.old, r.oldUntil, r.digest = r.digest, r.now+d.Grace.Microseconds(), d.Rotate
	}
	if d.Bind != "" {
		r.user, r.remembered, r.bound = d.Bind, d.Remember, r.now
	}
	_, err = tx.ExecContext(ctx, s.stmt.update, d.Locator[:], r.digest[:], r.old[:], r.oldUntil,
		max(r.touched, r.now), r.bound, r.end(d.Limits), []byte(r.user), r.remembered,
		[]byte(d.Limits.DeviceOf(r.user, r.device)), encode(fields))
	return err
}

// apply returns the fields after the changes of d.
func apply(d storage.Delta, old map[string][]byte) (map[string][]byte, error) {
	fields, err := d.Apply(old)
	if size := sizeOf(fields); err == nil && size > MaxBytes && size > sizeOf(old) {
		err = storage.ErrTooLarge
	}
	return fields, err
}

// Destroy implements session.Store.
func (s *Store) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	return s.change(ctx, "destroy", storage.Delta{Locator: l}, func(ctx context.Context, tx *sql.Tx, r *row) error {
		switch {
		case r == nil:
			return nil
		case !r.digest.Equal(d) && r.now < r.expires:
			return storage.ErrGone
		}
		_, err := tx.ExecContext(ctx, s.stmt.remove, l[:])
		return err
	})
}

// change calls f in a transaction that has locked the session of d. r is nil if there is no session. With d.MaxPerUser, it
// also locks the user, before it locks a session, and ends the user's oldest sessions after f.
func (s *Store) change(ctx context.Context, action string, d storage.Delta, f func(ctx context.Context, tx *sql.Tx, r *row) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation})
	if err != nil {
		return wrap(ctx, action, err)
	}
	defer func() { _ = tx.Rollback() }() // without effect after Commit
	if d.MaxPerUser > 0 {
		if _, err := tx.ExecContext(ctx, s.stmt.lockUser, []byte(d.Bind)); err != nil {
			return wrap(ctx, action, err)
		}
	}
	r, err := scanRow(tx.QueryRowContext(ctx, s.stmt.lock, d.Locator[:]))
	if err == nil {
		err = f(ctx, tx, r)
	}
	if err == nil && d.MaxPerUser > 0 {
		_, err = tx.ExecContext(ctx, s.stmt.endOldest, []byte(d.Bind), d.Locator[:], d.MaxPerUser)
	}
	if err == nil {
		err = tx.Commit()
	}
	return wrap(ctx, action, err)
}

// List implements session.Store.
func (s *Store) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	var entries []storage.Entry
	err := s.forEach(ctx, user, func(r *row) {
		if !r.expired(lim) {
			entries = append(entries, storage.Entry{Locator: r.locator, Record: r.record()})
		}
	})
	return entries, err
}

// Revoke implements session.Store.
func (s *Store) Revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error) {
	counts := map[storage.Locator]bool{} // false if the session has expired, but longer limits would let it load again
	err := s.forEach(ctx, user, func(r *row) {
		if match(r.locator) {
			counts[r.locator] = r.now < r.expires
		}
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	revoked := 0
	for l, count := range counts {
		done, err := s.db.ExecContext(ctx, s.stmt.revoke, l[:], []byte(user))
		if err != nil {
			return revoked, wrap(ctx, "revoke", err)
		}
		if n, _ := done.RowsAffected(); n > 0 && count {
			revoked++
		}
	}
	return revoked, nil
}

// forEach calls f for each session of the user.
func (s *Store) forEach(ctx context.Context, user string, f func(*row)) error {
	if user == "" {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, s.stmt.list, []byte(user))
	if err != nil {
		return wrap(ctx, "list", err)
	}
	defer rows.Close()
	for rows.Next() {
		switch r, err := scanRow(rows); {
		case err == nil:
			f(r)
		case !errors.Is(err, storage.ErrCorrupt): // a corrupt row counts as missing
			return wrap(ctx, "list", err)
		}
	}
	return wrap(ctx, "list", rows.Err())
}

// DeleteExpired removes up to 1,000 expired sessions, and returns their number. Call it regularly, for example every
// minute, until the result is less than 1,000. A session's expiry follows from the limits of the last call that has saved
// or touched it.
func (s *Store) DeleteExpired(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	done, err := s.db.ExecContext(ctx, s.stmt.deleteExpired)
	if err != nil {
		return 0, wrap(ctx, "delete expired sessions", err)
	}
	n, _ := done.RowsAffected()
	return int(n), nil
}
