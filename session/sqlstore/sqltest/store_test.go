// Package sqltest tests package sqlstore with drivers, which the main module does not require.
package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/sqlstore"
	"github.com/lazyreq/lazyreq/session/storetest"
)

// database is a database with the table of a store.
type database struct {
	*sql.DB
	dialect sqlstore.Dialect
}

func openSQLite(t *testing.T) database {
	t.Helper()
	db, err := sql.Open("sqlite", openSQLiteFile(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return database{db, sqlstore.SQLite}
}

// openSQLiteFile creates a database with the table, and returns its data source name.
func openSQLiteFile(t *testing.T) string {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "sessions.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
	create(t, "sqlite", dsn, sqlstore.SQLite)
	return dsn
}

func create(t *testing.T, driver, dsn string, dialect sqlstore.Dialect) database {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(16)
	for range 2 { // the second call does nothing
		_, err = db.Exec(sqlstore.Schema(dialect, ""))
		require.NoError(t, err)
	}
	return database{db, dialect}
}

func (db database) store(t *testing.T, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	o.Dialect = db.dialect
	if o.Timeout == 0 {
		o.Timeout = time.Minute // the machine may be busy
	}
	s, err := sqlstore.New(db.DB, o)
	require.NoError(t, err)
	return s
}

// age makes every session older, as if the database's clock had moved forward.
func (db database) age(t *testing.T, d time.Duration) {
	t.Helper()
	n := d.Microseconds()
	_, err := db.Exec(fmt.Sprintf(`UPDATE sessions SET old_until = old_until - %d, created = created - %d,
		touched = touched - %d, bound = bound - %d, expires = expires - %d`, n, n, n, n, n))
	require.NoError(t, err)
}

func conforms(t *testing.T, db database) {
	s := db.store(t, sqlstore.Options{})
	require.NoError(t, s.Check(context.Background()))
	storetest.Run(t, storetest.Host{
		Unit: time.Minute,
		Open: func(t *testing.T) session.Store {
			_, err := db.Exec("DELETE FROM sessions")
			require.NoError(t, err)
			return s
		},
		Advance: db.age,
	})
}

func TestSQLiteConformsToStore(t *testing.T) { conforms(t, openSQLite(t)) }

func TestPostgreSQLConformsToStore(t *testing.T) { conforms(t, openPostgreSQL(t)) }
