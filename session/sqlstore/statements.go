package sqlstore

import (
	"regexp"
	"strings"
)

// Dialect is a kind of database.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1
	SQLite
)

const defaultTable = "sessions"

// tableName leaves room for the longer names of indexes, because a name in PostgreSQL has at most 63 bytes.
var tableName = regexp.MustCompile("^[a-z_][a-z0-9_]{0,39}$")

// Schema returns the statements that create the table and its indexes, unless they exist. An empty table means "sessions".
// Times are in microseconds since 1970.
func Schema(d Dialect, table string) string {
	if table == "" {
		table = defaultTable
	}
	return d.replacer(table).Replace(`CREATE TABLE IF NOT EXISTS {table} (
	locator BYTES PRIMARY KEY,
	digest BYTES NOT NULL,
	old_digest BYTES NOT NULL,
	old_until BIGINT NOT NULL,
	created BIGINT NOT NULL,
	touched BIGINT NOT NULL,
	bound BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	user_name BYTES NOT NULL,
	remembered BOOLEAN NOT NULL,
	device BYTES NOT NULL,
	fields BYTES NOT NULL
);
CREATE INDEX IF NOT EXISTS {table}_user ON {table} (user_name);
CREATE INDEX IF NOT EXISTS {table}_expires ON {table} (expires);
`)
}

// replacer translates statements to the dialect.
func (d Dialect) replacer(table string) *strings.Replacer {
	if d == SQLite {
		return strings.NewReplacer("{table}", table, "BYTES", "BLOB", "$", "?", "{skip}", "",
			// The precision is a millisecond.
			"{now}", "CAST(round((julianday('now') - 2440587.5) * 86400000) * 1000 AS INTEGER)")
	}
	return strings.NewReplacer("{table}", table, "BYTES", "BYTEA", "{skip}", " FOR UPDATE SKIP LOCKED",
		"{now}", "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
}

// statements holds the statements of a store.
type statements struct {
	load, touch, lockUser, lock, insert, update, endOldest, remove, list, revoke, deleteExpired string
}

func newStatements(d Dialect, table string) statements {
	const columns = "locator, digest, old_digest, old_until, created, touched, bound, expires, user_name, remembered, device, fields, {now}"
	lock := "SELECT " + columns + " FROM {table} WHERE locator = $1 FOR UPDATE"
	lockUser := "SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 0))"
	if d == SQLite { // an UPDATE at the beginning locks the database, and a SELECT would not
		lock = "UPDATE {table} SET touched = touched WHERE locator = $1 RETURNING " + columns
		lockUser = "UPDATE {table} SET touched = touched WHERE user_name = $1 AND false"
	}
	r := d.replacer(table)
	return statements{
		load: r.Replace("SELECT " + columns + " FROM {table} WHERE locator = $1"),
		lock: r.Replace(lock), lockUser: r.Replace(lockUser),
		touch: r.Replace("UPDATE {table} SET touched = $4, expires = $5, device = $6 WHERE locator = $1 AND touched = $2 AND digest = $3"),
		insert: r.Replace("INSERT INTO {table} (locator, digest, old_digest, old_until, created, touched, bound, expires, " +
			"user_name, remembered, device, fields) VALUES ($1, $2, $2, 0, {now}, {now}, {now}, {now} + $3, $4, $5, $6, $7) ON CONFLICT (locator) DO NOTHING"),
		update: r.Replace("UPDATE {table} SET digest = $2, old_digest = $3, old_until = $4, touched = $5, bound = $6, expires = $7, " +
			"user_name = $8, remembered = $9, device = $10, fields = $11 WHERE locator = $1"),
		// Expired sessions don't count, but longer limits would let them load again.
		endOldest: r.Replace("DELETE FROM {table} WHERE user_name = $1 AND (expires <= {now} OR locator IN (SELECT locator FROM {table} " +
			"WHERE user_name = $1 AND expires > {now} ORDER BY locator = $2 DESC, bound DESC LIMIT 1000000 OFFSET $3))"),
		remove: r.Replace("DELETE FROM {table} WHERE locator = $1"),
		list:   r.Replace("SELECT " + columns + " FROM {table} WHERE user_name = $1"),
		revoke: r.Replace("DELETE FROM {table} WHERE locator = $1 AND user_name = $2"),
		// Without skip, this could be in a deadlock with endOldest.
		deleteExpired: r.Replace("DELETE FROM {table} WHERE locator IN " +
			"(SELECT locator FROM {table} WHERE expires <= {now} LIMIT 1000{skip}) AND expires <= {now}"),
	}
}
