package memstore

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// redacted hides what embeds it.
type redacted = redact.Hidden

// Options bound a [Store]. The zero value is the default.
type Options struct {
	// MaxSessions is how many sessions are kept; 0 means 100,000.
	MaxSessions int

	// MaxBytes is how much memory they may take together; 0 means 64 MiB.
	// Counted are the bytes of names, values and users, 128 for each field and 512
	// for each session, which is about what Go needs for them.
	MaxBytes int
}

const (
	defaultMaxSessions = 100_000
	defaultMaxBytes    = 64 << 20

	bytesPerSession = 512
	bytesPerField   = 128
	bytesPerUser    = 256 // in the index
)

// Store is a [storage.Store] in this process. Its bounds are hard: what would exceed them
// evicts the sessions that were used least recently. Sessions that have expired
// leave when they are asked for, and up to two with each save once they are the
// least recently used. It is safe for concurrent use, starts no goroutine, needs no
// Close, and its content ends with the process. Load costs no more for a large session than
// for a small one; Commit costs one copy of the session's table of fields, List and
// RevokeAll cost time in proportion to the user's sessions.
type Store struct {
	redacted
	maxSessions, maxBytes int

	mu       sync.Mutex // never held across I/O or a caller's code
	sessions map[storage.Locator]*list.Element
	recent   list.List // of *entry, the most recently used first
	users    map[string]map[storage.Locator]*list.Element
	bytes    int
}

// entry is guarded by Store.mu. The map is replaced, never changed, because
// records that were handed out share it.
type entry struct {
	locator          storage.Locator
	digest           storage.Digest
	old              storage.Digest // the one before, which still loads
	oldUntil         time.Time      // … before this moment; zero if there is none
	user             string
	created, touched time.Time
	limits           storage.Limits // of the latest call
	fields           map[string][]byte
	bytes            int
}

// New returns an empty store. It fails if a bound is negative, or if
// MaxBytes has no room for one session.
func New(o Options) (*Store, error) {
	if o.MaxSessions == 0 {
		o.MaxSessions = defaultMaxSessions
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.MaxSessions < 0 {
		return nil, fmt.Errorf("memstore: Options.MaxSessions: %d is negative", o.MaxSessions)
	}
	if o.MaxBytes < bytesPerSession+bytesPerField {
		return nil, fmt.Errorf("memstore: Options.MaxBytes: %d has no room for a session", o.MaxBytes)
	}
	return &Store{
		maxSessions: o.MaxSessions,
		maxBytes:    o.MaxBytes,
		sessions:    make(map[storage.Locator]*list.Element),
		users:       make(map[string]map[storage.Locator]*list.Element),
	}, nil
}

// Len returns how many sessions are kept, expired ones that are still there
// included.
func (m *Store) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// Close forgets all sessions and frees their memory, which logs everybody out. There is
// no goroutine to end: a store that is simply dropped leaks nothing, and one that is used
// after Close is an empty one. It returns nil, and makes the store an io.Closer.
func (m *Store) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = make(map[storage.Locator]*list.Element)
	m.users = make(map[string]map[storage.Locator]*list.Element)
	m.recent.Init()
	m.bytes = 0
	return nil
}

// Load implements [storage.Store].
func (m *Store) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	el := m.aliveLocked(l, lim, now)
	if el == nil {
		return storage.Record{}, storage.ErrNotFound
	}
	e := el.Value.(*entry)
	if e.old.Equal(d) && now.Before(e.oldUntil) {
		rec := e.record()
		rec.Old = true
		return rec, nil
	}
	if !e.digest.Equal(d) {
		return storage.Record{}, storage.ErrNotFound
	}
	e.limits = lim
	if now.Sub(e.touched) >= lim.Touch {
		e.touched = now
	}
	m.recent.MoveToFront(el)
	return e.record(), nil
}

func (e *entry) record() storage.Record {
	return storage.Record{Fields: e.fields, Created: e.created, Touched: e.touched, User: e.user}
}

// Commit implements [storage.Store]. A session that is larger than MaxBytes is
// ErrTooLarge and changes nothing.
func (m *Store) Commit(ctx context.Context, d storage.Delta) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	el := m.aliveLocked(d.Locator, d.Limits, now)
	if d.Create {
		if el != nil {
			return storage.ErrExists
		}
		return m.createLocked(d, now)
	}
	if el == nil || !el.Value.(*entry).digest.Equal(d.Digest) {
		return storage.ErrGone
	}
	return m.changeLocked(el, d, now)
}

// Destroy implements [storage.Store].
func (m *Store) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	el := m.sessions[l]
	if el == nil {
		return nil
	}
	e := el.Value.(*entry)
	if !e.digest.Equal(d) && !e.limits.Expired(e.created, e.touched, time.Now()) {
		return storage.ErrGone
	}
	m.dropLocked(el)
	return nil
}

func (m *Store) createLocked(d storage.Delta, now time.Time) error {
	fields, err := d.Apply(nil)
	if err != nil {
		return err
	}
	e := &entry{
		locator: d.Locator, digest: d.Digest, created: now, touched: now,
		limits: d.Limits, fields: fields, bytes: sizeOf(fields, d.Bind),
	}
	if e.bytes > m.maxBytes {
		return storage.ErrTooLarge
	}
	el := m.recent.PushFront(e)
	m.sessions[d.Locator] = el
	m.bytes += e.bytes
	m.bindLocked(el, d.Bind)
	m.makeRoomLocked(now)
	return nil
}

func (m *Store) changeLocked(el *list.Element, d storage.Delta, now time.Time) error {
	e := el.Value.(*entry)
	if !d.Meets(e.fields) {
		return storage.ErrConflict
	}
	if len(d.Changes) > 0 || d.Bind != "" {
		fields, err := d.Apply(e.fields)
		if err != nil {
			return err
		}
		size := sizeOf(fields, cmp.Or(d.Bind, e.user))
		if size > m.maxBytes {
			return storage.ErrTooLarge
		}
		m.bytes += size - e.bytes
		e.fields, e.bytes = fields, size
	}
	if d.Rotate != (storage.Digest{}) {
		e.old, e.oldUntil, e.digest = e.digest, now.Add(d.Grace), d.Rotate
	}
	m.bindLocked(el, d.Bind)
	e.limits, e.touched = d.Limits, now
	m.recent.MoveToFront(el)
	m.makeRoomLocked(now)
	return nil
}

// aliveLocked finds a session and drops it if it has expired.
func (m *Store) aliveLocked(l storage.Locator, lim storage.Limits, now time.Time) *list.Element {
	el := m.sessions[l]
	if el == nil {
		return nil
	}
	if e := el.Value.(*entry); lim.Expired(e.created, e.touched, now) {
		m.dropLocked(el)
		return nil
	}
	return el
}

// makeRoomLocked restores the bounds. It stops before the front, which is the
// session just saved and fits by itself. Of the expired it drops no more than
// two, so that no single save pays for all of them.
func (m *Store) makeRoomLocked(now time.Time) {
	for expired := 0; ; {
		el := m.recent.Back()
		if el == m.recent.Front() {
			return
		}
		if e := el.Value.(*entry); len(m.sessions) <= m.maxSessions && m.bytes <= m.maxBytes {
			if expired == 2 || !e.limits.Expired(e.created, e.touched, now) {
				return
			}
			expired++
		}
		m.dropLocked(el)
	}
}

func (m *Store) dropLocked(el *list.Element) {
	e := m.recent.Remove(el).(*entry)
	m.unbindLocked(e)
	delete(m.sessions, e.locator)
	m.bytes -= e.bytes
}

func sizeOf(fields map[string][]byte, user string) int {
	size := bytesPerSession
	if user != "" {
		size += bytesPerUser + len(user)
	}
	for name, v := range fields {
		size += bytesPerField + len(name) + len(v)
	}
	return size
}
