// Package memstore keeps sessions in the memory of this process.
package memstore

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// redacted hides the struct that embeds it.
type redacted = redact.Hidden

// Options configures a [Store]. The zero value means the defaults.
type Options struct {
	// MaxKeys bounds the number of sessions. Default: 100,000.
	MaxKeys int
	// MaxBytes bounds the memory for all sessions. It counts the bytes of names, values, users and devices, 128 for
	// each field, 256 for each user and 512 for each session, which is about Go's overhead for them. Default: 64 MiB.
	MaxBytes int64
}

const (
	bytesPerSession = 512
	bytesPerField   = 128
	bytesPerUser    = 256 // for the entry in the index of users
)

// Store is a session.Store in memory. When it would exceed its bounds, it evicts the least recently used sessions. It
// removes an expired session when a method is called for that session. Each save also removes up to two expired
// sessions. A Store is safe for concurrent use, starts no goroutine and need not be closed.
//
// The cost of Load does not depend on the size of the session. Commit copies the session's table of fields. List and
// Revoke cost time in proportion to the number of the user's sessions.
type Store struct {
	redacted
	maxKeys  int
	maxBytes int64

	mu       sync.Mutex // never held across I/O
	sessions map[storage.Locator]*entry
	recent   list.List // of *entry, the most recently used first
	users    map[string]map[storage.Locator]*entry
	binds    int64 // the number of times that a session was bound to a user
	bytes    int64
}

// entry is a session. It is guarded by Store.mu. The map of its fields never changes, because records that were returned
// share it: a commit makes a new map.
type entry struct {
	place    *list.Element // in Store.recent
	locator  storage.Locator
	digest   storage.Digest
	old      storage.Digest // the previous digest, with which Load works until oldUntil
	oldUntil time.Time
	record   storage.Record
	limits   storage.Limits // of the latest call
	bound    int64          // Store.binds when it was bound to its user
	bytes    int64
}

// expired reports whether the session has ended under the limits of the latest call.
func (e *entry) expired(now time.Time) bool {
	return e.limits.For(e.record.Remembered).Expired(e.record.Created, e.record.Touched, now)
}

// New returns an empty store. It returns an error if a bound is negative, or if MaxBytes has no room for one session.
func New(o Options) (*Store, error) {
	s := &Store{
		maxKeys: cmp.Or(o.MaxKeys, 100_000), maxBytes: cmp.Or(o.MaxBytes, 64<<20),
		sessions: make(map[storage.Locator]*entry), users: make(map[string]map[storage.Locator]*entry),
	}
	if s.maxKeys < 0 {
		return nil, option.Errorf("memstore", "Options.MaxKeys", "is %d, want 0 or more", s.maxKeys)
	}
	if s.maxBytes < bytesPerSession+bytesPerField {
		return nil, option.Errorf("memstore", "Options.MaxBytes", "is %d, too small for one session", s.maxBytes)
	}
	return s, nil
}

// Len returns the number of sessions, including expired ones that were not removed yet.
func (m *Store) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// lock locks the store. If ctx has ended, lock returns its error instead.
func (m *Store) lock(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		m.mu.Lock()
	}
	return err
}

// Load implements session.Store.
func (m *Store) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Record{}, err
	}
	defer m.mu.Unlock()
	now := time.Now()
	e := m.findLocked(l, lim, now)
	if e == nil {
		return storage.Record{}, storage.ErrNotFound
	}
	if e.old.Equal(d) && now.Before(e.oldUntil) {
		rec := e.record
		rec.Old = true
		return rec, nil
	}
	if !e.digest.Equal(d) {
		return storage.Record{}, storage.ErrNotFound
	}
	m.useLocked(e, lim, now.Sub(e.record.Touched) >= lim.Touch, now)
	return e.record, nil
}

// Commit implements session.Store. A session larger than MaxBytes is [storage.ErrTooLarge].
func (m *Store) Commit(ctx context.Context, d storage.Delta) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	now := time.Now()
	e := m.findLocked(d.Locator, d.Limits, now)
	switch {
	case d.Create && e != nil:
		return storage.ErrExists
	case d.Create:
		e = &entry{locator: d.Locator, digest: d.Digest, record: storage.Record{Created: now}}
	case e == nil || !e.digest.Equal(d.Digest):
		return storage.ErrGone
	}
	return m.commitLocked(e, d, now)
}

// commitLocked applies d to e. It returns an error before it has changed anything.
func (m *Store) commitLocked(e *entry, d storage.Delta, now time.Time) error {
	fields, err := d.Apply(e.record.Fields)
	if err != nil {
		return err
	}
	size := e.bytes
	if d.Create || len(d.Changes) > 0 || d.Bind != "" {
		size = sizeOf(fields, cmp.Or(d.Bind, e.record.User)) + int64(len(e.record.Device))
	}
	if size > m.maxBytes {
		return storage.ErrTooLarge
	}
	if d.Create {
		e.place = m.recent.PushFront(e)
		m.sessions[e.locator] = e
	}
	m.bytes += size - e.bytes
	e.bytes = size
	if d.Rotate != (storage.Digest{}) {
		e.old, e.oldUntil, e.digest = e.digest, now.Add(d.Grace), d.Rotate
	}
	if d.Bind != "" {
		m.bindLocked(e, d.Bind)
		e.record.Remembered = d.Remember
	}
	e.record.Fields = fields
	m.useLocked(e, d.Limits, true, now)
	if d.MaxPerUser > 0 {
		m.endOldestLocked(d.Bind, d.MaxPerUser, now)
	}
	m.evictLocked(now)
	return nil
}

// useLocked records that a call with these limits has used e. If touch is true, it also touches e.
func (m *Store) useLocked(e *entry, lim storage.Limits, touch bool, now time.Time) {
	m.recent.MoveToFront(e.place)
	device := lim.DeviceOf(e.record.User, e.record.Device)
	e.limits = lim
	e.limits.Device = "" // must not be kept unless the session is touched and has a user
	if !touch {
		return
	}
	grown := int64(len(device) - len(e.record.Device))
	e.record.Touched, e.record.Device = now, device
	e.bytes += grown
	m.bytes += grown
	if grown > 0 {
		m.evictLocked(now)
	}
}

// Destroy implements session.Store.
func (m *Store) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	e := m.sessions[l]
	if e == nil {
		return nil
	}
	if !e.digest.Equal(d) && !e.expired(time.Now()) {
		return storage.ErrGone
	}
	m.removeLocked(e)
	return nil
}

// findLocked returns the session at l, or nil. It removes the session if it has expired.
func (m *Store) findLocked(l storage.Locator, lim storage.Limits, now time.Time) *entry {
	e := m.sessions[l]
	if e != nil && lim.For(e.record.Remembered).Expired(e.record.Created, e.record.Touched, now) {
		m.removeLocked(e)
		return nil
	}
	return e
}

// evictLocked removes the least recently used sessions until the store is within its bounds. It keeps the session at the
// front, which was just saved and is not too large. It also removes up to two expired sessions.
func (m *Store) evictLocked(now time.Time) {
	for expired := 0; m.recent.Len() > 1; {
		e := m.recent.Back().Value.(*entry)
		if len(m.sessions) <= m.maxKeys && m.bytes <= m.maxBytes {
			if expired == 2 || !e.expired(now) {
				return
			}
			expired++
		}
		m.removeLocked(e)
	}
}

func (m *Store) removeLocked(e *entry) {
	m.recent.Remove(e.place)
	m.unbindLocked(e)
	delete(m.sessions, e.locator)
	m.bytes -= e.bytes
}

func sizeOf(fields map[string][]byte, user string) int64 {
	size := bytesPerSession
	if user != "" {
		size += bytesPerUser + len(user)
	}
	for name, v := range fields {
		size += bytesPerField + len(name) + len(v)
	}
	return int64(size)
}
