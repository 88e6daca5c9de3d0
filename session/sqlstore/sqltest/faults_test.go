package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/sqlstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

var limits = storage.Limits{Idle: time.Hour, Absolute: 24 * time.Hour, Touch: time.Minute}

const secretUser = "ada@example.com"

var (
	locator = storage.Locator{1, 2, 3}
	digest  = storage.Digest{4, 5, 6}
)

func delta(name string, c storage.Change) storage.Delta {
	return storage.Delta{Locator: locator, Digest: digest, Limits: limits, Changes: map[string]storage.Change{name: c}}
}

func setting(name, value string) storage.Delta {
	return delta(name, storage.Change{Op: storage.OpSet, Value: []byte(value)})
}

func login(t *testing.T, s session.Store) {
	t.Helper()
	d := setting("name", "ada")
	d.Create, d.Bind = true, secretUser
	require.NoError(t, s.Commit(t.Context(), d))
}

// requireField checks that the session has this value.
func requireField(t *testing.T, s session.Store, name, want string) {
	t.Helper()
	rec, err := s.Load(t.Context(), locator, digest, limits)
	require.NoError(t, err)
	require.Equal(t, want, string(rec.Fields[name]))
}

// requireFailure checks that err is a failure of the database and that its text contains no data.
func requireFailure(t *testing.T, err error) {
	t.Helper()
	require.ErrorContains(t, err, "sqlstore: ")
	for _, secret := range []string{secretUser, "ada", locator.Key(), fmt.Sprintf("%x", locator[:3]), fmt.Sprintf("%x", digest[:3])} {
		require.NotContains(t, err.Error(), secret)
	}
	for _, known := range []error{storage.ErrNotFound, storage.ErrGone, storage.ErrExists, storage.ErrConflict, storage.ErrTooLarge} {
		require.NotErrorIs(t, err, known)
	}
}

func TestOptions(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer db.Close()
	_, err = sqlstore.New(nil, sqlstore.Options{Dialect: sqlstore.SQLite})
	require.EqualError(t, err, "sqlstore: New: db is nil")
	for field, o := range map[string]sqlstore.Options{
		"Options.Dialect": {},
		"Options.Table":   {Dialect: sqlstore.SQLite, Table: `a"; DROP TABLE users`},
		"Options.Timeout": {Dialect: sqlstore.SQLite, Timeout: -1},
	} {
		_, err := sqlstore.New(db, o)
		require.ErrorContains(t, err, field)
	}
	for _, table := range []string{"1a", "A", strings.Repeat("a", 41), "a.b"} {
		_, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite, Table: table})
		require.ErrorContains(t, err, "Options.Table")
	}
}

func TestMissingTable(t *testing.T) {
	for name, db := range map[string]database{"SQLite": openSQLite(t), "PostgreSQL": openPostgreSQL(t)} {
		s := db.store(t, sqlstore.Options{Table: "nowhere"})
		require.ErrorContains(t, s.Check(t.Context()), "nowhere", name)
		_, err := s.Load(t.Context(), locator, digest, limits)
		requireFailure(t, err)
		d := setting("name", "ada")
		d.Create, d.Bind = true, secretUser
		requireFailure(t, s.Commit(t.Context(), d))
		requireFailure(t, s.Destroy(t.Context(), locator, digest))
		_, err = s.List(t.Context(), secretUser, limits)
		requireFailure(t, err)
		_, err = s.Revoke(t.Context(), secretUser, func(storage.Locator) bool { return true })
		requireFailure(t, err)
		_, err = s.DeleteExpired(t.Context())
		requireFailure(t, err)
	}
}

// A row that another program has changed counts as missing for a manager. The user's other sessions can be listed and
// revoked.
func TestCorruptRow(t *testing.T) {
	db := openSQLite(t)
	s := db.store(t, sqlstore.Options{})
	for _, change := range []string{"fields = X'05'", "fields = X'ffffffffffffffffffff01'", "fields = X'0161'", "digest = X'01'"} {
		login(t, s)
		_, err := db.Exec("UPDATE sessions SET " + change)
		require.NoError(t, err)
		_, err = s.Load(t.Context(), locator, digest, limits)
		require.ErrorIs(t, err, storage.ErrCorrupt, change)
		require.ErrorIs(t, s.Commit(t.Context(), setting("a", "b")), storage.ErrCorrupt)
		require.ErrorIs(t, s.Destroy(t.Context(), locator, digest), storage.ErrCorrupt)
		intact := setting("name", "eve")
		intact.Locator, intact.Create, intact.Bind = storage.Locator{9}, true, secretUser
		require.NoError(t, s.Commit(t.Context(), intact))
		entries, err := s.List(t.Context(), secretUser, limits)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		n, err := s.Revoke(t.Context(), secretUser, func(storage.Locator) bool { return true })
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = db.Exec("DELETE FROM sessions")
		require.NoError(t, err)
	}
}

func TestDeleteExpired(t *testing.T) {
	for name, db := range map[string]database{"SQLite": openSQLite(t), "PostgreSQL": openPostgreSQL(t)} {
		s := db.store(t, sqlstore.Options{})
		login(t, s)
		other := setting("name", "bob")
		other.Locator, other.Create = storage.Locator{9}, true
		require.NoError(t, s.Commit(t.Context(), other))
		db.age(t, limits.Idle-time.Minute)
		require.NoError(t, s.Commit(t.Context(), setting("a", "b")))
		db.age(t, 2*time.Minute)
		n, err := s.DeleteExpired(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, 1, n, name)
		requireField(t, s, "a", "b")
	}
}

// DeleteExpired does not wait for a session that another call has locked. Otherwise, both could wait for each other.
func TestDeleteExpiredSkipsLockedSessions(t *testing.T) {
	db := openPostgreSQL(t)
	s := db.store(t, sqlstore.Options{Timeout: 5 * time.Second})
	login(t, s)
	other := setting("name", "bob")
	other.Locator, other.Create = storage.Locator{9}, true
	require.NoError(t, s.Commit(t.Context(), other))
	db.age(t, 2*limits.Idle)
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec("SELECT FROM sessions WHERE locator = $1 FOR UPDATE", locator[:])
	require.NoError(t, err)
	for _, want := range []int{1, 0} {
		n, err := s.DeleteExpired(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.NoError(t, tx.Rollback())
	n, err := s.DeleteExpired(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// A transaction of another program holds the row. Calls end at their timeout and change nothing.
func TestHangingDatabase(t *testing.T) {
	for name, db := range map[string]database{"SQLite": openSQLite(t), "PostgreSQL": openPostgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			login(t, db.store(t, sqlstore.Options{}))
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = tx.Exec("UPDATE sessions SET touched = touched")
			require.NoError(t, err)
			s := db.store(t, sqlstore.Options{Timeout: 50 * time.Millisecond})
			err = s.Commit(t.Context(), setting("name", "eve"))
			requireFailure(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			err = s.Destroy(t.Context(), locator, digest)
			requireFailure(t, err)
			require.NoError(t, tx.Rollback())
			requireField(t, db.store(t, sqlstore.Options{}), "name", "ada")
		})
	}
}

func TestEndedContext(t *testing.T) {
	db := openSQLite(t)
	s := db.store(t, sqlstore.Options{})
	login(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Commit(ctx, setting("name", "eve")), context.Canceled)
	_, err := s.Load(ctx, locator, digest, limits)
	require.ErrorIs(t, err, context.Canceled)
	requireField(t, s, "name", "ada")
}

// If the database is full, sessions can still be read, and a failed commit changes nothing.
func TestFullDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "full.db")
	db := create(t, "sqlite", "file:"+file+"?_pragma=max_page_count(20)", sqlstore.SQLite)
	s := db.store(t, sqlstore.Options{})
	login(t, s)
	err := s.Commit(t.Context(), setting("large", strings.Repeat("x", 200_000)))
	requireFailure(t, err)
	require.ErrorContains(t, err, "with code 13") // SQLITE_FULL
	requireField(t, s, "name", "ada")
	require.NoError(t, s.Commit(t.Context(), setting("small", "y")))
}

// The server crashes and restarts while clients add to a counter. The counter has each acknowledged addition, and no
// others except those without an answer.
func TestPostgreSQLCrash(t *testing.T) {
	p := startPostgreSQL(t)
	db := create(t, "pgx", p.dsn(), sqlstore.PostgreSQL)
	s := db.store(t, sqlstore.Options{Timeout: 5 * time.Second})
	login(t, s)
	var done, unknown atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch err := s.Commit(t.Context(), delta("n", storage.Change{Op: storage.OpAdd, N: 1})); {
				case err == nil:
					done.Add(1)
				case errors.Is(err, storage.ErrGone):
					t.Error("the session is gone")
				default:
					unknown.Add(1)
				}
			}
		})
	}
	for range 2 {
		before := done.Load()
		require.Eventually(t, func() bool { return done.Load() > before+20 }, time.Minute, time.Millisecond)
		p.kill()
		p.start()
	}
	before := done.Load()
	require.Eventually(t, func() bool { return done.Load() > before+20 }, time.Minute, time.Millisecond)
	close(stop)
	wg.Wait()
	require.Positive(t, unknown.Load(), "some calls met the crash")
	rec, err := s.Load(t.Context(), locator, digest, limits)
	require.NoError(t, err)
	n, err := strconv.ParseInt(string(rec.Fields["n"]), 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, done.Load())
	require.LessOrEqual(t, n, done.Load()+unknown.Load())
}
