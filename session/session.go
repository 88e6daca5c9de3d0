package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

// A Session is one request's view of its visitor's session. Get it with From.
//
// The first method called loads it; all of them return the error of loading, an
// *Error, if that failed. Reads see the session as it was loaded, with the
// request's own writes over it. Writes are kept until the response's header goes
// out and are saved then, together; later ones return an error that is
// reqctx.ErrCommitted. A write to a request without session makes a new one. The
// save doesn't need the client to wait for it: see Options.SaveTimeout.
//
// A request that came with a secret which was renewed a moment ago may read the
// session during Options.RenewGrace; what writes fails with ErrGone.
//
// All methods may be called concurrently. A Session must not be used after its
// request: methods return reqctx.ErrFinished then. It formats as "[redacted]".
type Session struct {
	redacted
	m   *Manager
	c   *reqctx.Context
	err error // why From failed; m and c are nil then

	mu     sync.Mutex               // never held across I/O or a caller's code
	writes map[string]write         // what a save has to do; read-only once that is late
	known  map[string]storage.Value // fields that the store has got or shown since the load
	growth int                      // of the session's size, by writes and known
	renew  bool                     // a save also replaces the secret
	user   string                   // a save also binds the session to this user, unless empty
	ended  bool                     // destroyed by this request: what was loaded is void
}

// Get returns the value of a field as encoding/json decodes it into an any, so
// that numbers are float64; nil if there is none. A value that cannot be decoded
// is logged and reads as nil: it doesn't end the session.
func (s *Session) Get(name string) (any, error) {
	var v any
	if ok, err := s.decode(s.c, name, jsonCodec{}, &v); !ok {
		return nil, err
	}
	return v, nil
}

// Set gives a field the JSON encoding of v; later changes of v don't count. It
// returns the error of encoding, or one that is ErrTooLarge for what would exceed
// Options.MaxFieldBytes or MaxBytes, and changes nothing then.
func (s *Session) Set(name string, v any) error {
	return s.encode(s.c, name, jsonCodec{}, v, false)
}

// Add adds n to a field that holds a whole number, or nothing, which counts as 0.
// The store adds, so that concurrent requests lose nothing. It fails with
// ErrNotCounter if the field holds something else, or the sum would be beyond
// MaxCounter either way.
func (s *Session) Add(name string, n int64) error {
	return s.write(s.c, name, write{Change: storage.Change{Op: storage.OpAdd, N: n}})
}

// Delete removes a field, if it is there. It doesn't make a session.
func (s *Session) Delete(name string) error {
	return s.write(s.c, name, write{Change: storage.Change{Op: storage.OpDelete}})
}

// Exists says whether the request has a session: one that was loaded, or one
// that its writes will make.
func (s *Session) Exists() (bool, error) {
	snap, err := s.load(s.c)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.liveLocked(snap) || s.createsLocked(), nil
}

// Renew gives the session a new secret when it is saved. The values stay. Requests
// on their way with the old cookie can no longer save. They can still read for
// Options.RenewGrace, provided that the renewing request changes nothing else: if it
// also writes, the old secret is worthless at once, so that what is written at a
// login never shows to whoever planted or saw the cookie of before. (Bind is the
// better call at a login.) It does nothing without a session; a new one has a new
// secret anyhow.
func (s *Session) Renew() error {
	return s.mark("Renew", func() { s.renew = true })
}

// Destroy removes the session from the store at once, and its cookie from the
// client when the header goes out. What the request wrote before is void; what it
// writes later makes a new session. A request that loaded the session earlier
// cannot bring it back: its save fails with ErrGone. Destroy itself fails with
// ErrGone, removing nothing, if another request has renewed the session since.
// A client that goes away doesn't cancel it: see Options.SaveTimeout. If the header
// goes out while Destroy runs, the client keeps a cookie that leads nowhere.
func (s *Session) Destroy() error {
	snap, err := s.ending("Destroy")
	if err != nil {
		return err
	}
	if snap.exists {
		ctx, cancel := s.m.lasting(s.c)
		defer cancel()
		if err := s.m.store.Destroy(ctx, snap.token.locator, snap.token.digest()); err != nil {
			return &Error{Action: "destroy", Err: err}
		}
	}
	s.end()
	return nil
}

// end makes void what was loaded and written.
func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes, s.known, s.growth = nil, nil, 0
	s.renew, s.user, s.ended = false, "", true
}

// decode reads a field into the pointer v. It says false if there is none or it
// cannot be decoded, which may leave v half written.
func (s *Session) decode(ctx context.Context, name string, codec Codec, v any) (bool, error) {
	val, err := s.value(ctx, name)
	if err != nil || !val.Exists {
		return false, err
	}
	return s.decodeValue(name, val, codec, v), nil
}

// decodeValue says whether it could. If not, it has logged that.
func (s *Session) decodeValue(name string, val storage.Value, codec Codec, v any) bool {
	err := codec.Decode(val.Bytes, v)
	if err != nil {
		s.undecodable(name, err)
	}
	return err == nil
}

func (s *Session) undecodable(name string, err error) {
	s.c.Logger().Warn("session: a field cannot be decoded and is ignored", "field", name, "error", err)
}

func (s *Session) encode(ctx context.Context, name string, codec Codec, v any, guard bool) error {
	data, err := encodeField(name, codec, v)
	if err != nil {
		return err
	}
	return s.write(ctx, name, write{Change: storage.Change{Op: storage.OpSet, Value: data}, guard: guard})
}

func encodeField(name string, codec Codec, v any) ([]byte, error) {
	data, err := codec.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("session: field %q cannot be encoded: %w", name, err)
	}
	return data, nil
}

// value returns a field, the request's own writes first.
func (s *Session) value(ctx context.Context, name string) (storage.Value, error) {
	snap, err := s.load(ctx)
	if err != nil {
		return storage.Value{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.valueLocked(snap, name), nil
}

// mark notes what else a save has to do.
func (s *Session) mark(doing string, note func()) error {
	if _, err := s.writable(s.c, doing); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return committed(doing)
	}
	note()
	return nil
}

// writable loads the session unless it is too late to write, and fails if its
// secret is an old one. The answer holds only until the caller looks again, under
// the lock.
func (s *Session) writable(ctx context.Context, doing string) (*snapshot, error) {
	if err := s.early(doing); err != nil {
		return nil, err
	}
	return current(s.load(ctx))
}

// ending is writable for what ends sessions: it loads this one even for a client that
// has gone away.
func (s *Session) ending(doing string) (*snapshot, error) {
	if err := s.early(doing); err != nil {
		return nil, err
	}
	snap, err := s.load(s.c)
	if err == nil || s.c.Err() == nil || errors.Is(err, reqctx.ErrFinished) {
		return current(snap, err)
	}
	ctx, cancel := s.m.lasting(s.c)
	defer cancel()
	return current(s.m.load(ctx))
}

// early fails if it is too late to write.
func (s *Session) early(doing string) error {
	if s.err != nil {
		return s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return committed(doing)
	}
	return nil
}

// current fails if what was loaded has an old secret.
func current(snap *snapshot, err error) (*snapshot, error) {
	if err == nil && snap.old {
		return nil, &Error{Action: "save", Err: ErrGone}
	}
	return snap, err
}

func (s *Session) load(ctx context.Context) (*snapshot, error) {
	if s.err != nil {
		return nil, s.err
	}
	return loadKey.Get(ctx)
}

// lateLocked says whether the header is going out. If it isn't, commit is still to
// come and will wait for the lock, so what the caller writes under it is saved.
func (s *Session) lateLocked() bool { return s.c.Committed() }

func (s *Session) liveLocked(snap *snapshot) bool { return snap.exists && !s.ended }
