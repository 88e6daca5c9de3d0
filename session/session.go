package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lazyreq/lazyreq/reqctx"
)

// A Session is one request's view of its visitor's session. Get it with From.
//
// The first method called loads it; all of them return the error of loading, an
// *Error, if that failed. Reads see the session as it was loaded, with the
// request's own writes over it. Writes are kept until the response's header goes
// out and are saved then, together; later ones return an error that is
// reqctx.ErrCommitted. A write to a request without session makes a new one.
//
// All methods may be called concurrently. A Session must not be used after its
// request: methods return reqctx.ErrFinished then. It formats as "[redacted]".
type Session struct {
	redacted
	m   *Manager
	c   *reqctx.Context
	err error // why From failed; m and c are nil then

	mu      sync.Mutex        // never held across I/O or a caller's code
	changes map[string]Change // what the request has written; read-only once that is late
	renew   bool              // a save also replaces the secret
	ended   bool              // destroyed by this request: what was loaded is void
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
// returns the error of encoding, and changes nothing then.
func (s *Session) Set(name string, v any) error {
	return s.encode(s.c, name, jsonCodec{}, v)
}

// Delete removes a field, if it is there. It doesn't make a session.
func (s *Session) Delete(name string) error {
	return s.change(s.c, name, Change{Op: OpDelete})
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
	return s.liveLocked(snap) || len(s.setsLocked()) > 0, nil
}

// Renew gives the session a new secret when it is saved, which makes every
// cookie sent before worthless. Call it at login and whenever rights change, so
// that nobody who planted or saw the old cookie shares in them. The values stay.
// Requests that run at the same time with the old cookie can no longer save. It
// does nothing without a session; a new one has a new secret anyhow.
func (s *Session) Renew() error {
	if _, err := s.writable(s.c, "Renew"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return committed("Renew")
	}
	s.renew = true
	return nil
}

// Destroy removes the session from the store at once, and its cookie from the
// client when the header goes out. What the request wrote before is void; what it
// writes later makes a new session. A request that loaded the session earlier
// cannot bring it back: its save fails with ErrGone. Destroy itself fails with
// ErrGone, removing nothing, if another request has renewed the session since.
// If the header goes out while Destroy runs, the client keeps a cookie that leads
// nowhere.
func (s *Session) Destroy() error {
	snap, err := s.writable(s.c, "Destroy")
	if err != nil {
		return err
	}
	if snap.exists {
		if err := s.m.store.Destroy(s.c, snap.token.locator, snap.token.digest()); err != nil {
			return &Error{Action: "destroy", Err: err}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes, s.renew, s.ended = nil, false, true
	return nil
}

// decode reads a field into the pointer v. It says false if there is none or it
// cannot be decoded, which may leave v half written.
func (s *Session) decode(ctx context.Context, name string, codec Codec, v any) (bool, error) {
	data, ok, err := s.value(ctx, name)
	if err != nil || !ok {
		return false, err
	}
	if err := codec.Decode(data, v); err != nil {
		s.c.Logger().Warn("session: a field cannot be decoded and is ignored", "field", name, "error", err)
		return false, nil
	}
	return true, nil
}

func (s *Session) encode(ctx context.Context, name string, codec Codec, v any) error {
	data, err := codec.Encode(v)
	if err != nil {
		return fmt.Errorf("session: field %q cannot be encoded: %w", name, err)
	}
	return s.change(ctx, name, Change{Op: OpSet, Value: data})
}

// value returns a field's encoded bytes, the request's own writes first.
func (s *Session) value(ctx context.Context, name string) (data []byte, ok bool, err error) {
	snap, err := s.load(ctx)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, written := s.changes[name]; written {
		return c.Value, c.Op == OpSet, nil
	}
	if !s.liveLocked(snap) {
		return nil, false, nil
	}
	data, ok = snap.fields[name]
	return data, ok, nil
}

func (s *Session) change(ctx context.Context, name string, c Change) error {
	if name == "" {
		return errors.New("session: a field needs a name")
	}
	doing := fmt.Sprintf("the write of field %q", name)
	if _, err := s.writable(ctx, doing); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return committed(doing)
	}
	if s.changes == nil {
		s.changes = make(map[string]Change)
	}
	s.changes[name] = c
	return nil
}

// writable loads the session unless it is too late to write. The answer holds
// only until the caller looks again, under the lock.
func (s *Session) writable(ctx context.Context, doing string) (*snapshot, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.mu.Lock()
	late := s.lateLocked()
	s.mu.Unlock()
	if late {
		return nil, committed(doing)
	}
	return s.load(ctx)
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

// setsLocked returns the changes without deletions: all that a new session needs.
func (s *Session) setsLocked() map[string]Change {
	sets := make(map[string]Change, len(s.changes))
	for name, c := range s.changes {
		if c.Op == OpSet {
			sets[name] = c
		}
	}
	return sets
}
