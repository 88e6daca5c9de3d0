package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// token is guarded by Store.mu. State in its Token is not kept.
type token struct {
	coord.Token
	end ending
}

// Issue implements [coord.TokenStore].
func (m *Store) Issue(ctx context.Context, key coord.TokenKey, metadata []byte, ttl, keep time.Duration) error {
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.tokens[key] != nil {
		return coord.ErrExists
	}
	t := &token{Token: coord.Token{Metadata: bytes.Clone(metadata), Issued: now, Expires: now.Add(ttl), Forgotten: now.Add(ttl + keep)}}
	t.end = ending{at: t.Forgotten, forget: func(m *Store) { delete(m.tokens, key) }}
	if err := m.addLocked(&t.end, len(metadata)); err != nil {
		return err
	}
	m.tokens[key] = t
	return nil
}

// Use implements [coord.TokenStore].
func (m *Store) Use(ctx context.Context, key coord.TokenKey, by string) (coord.Token, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return coord.Token{}, err
	}
	defer m.mu.Unlock()
	t := m.tokens[key]
	if t == nil {
		return coord.Token{}, coord.ErrUnknown
	}
	if err := t.state(now).Err(); err != nil {
		told := t.told(now)
		told.Metadata = nil
		return told, err
	}
	t.Used, t.UsedBy = now, by
	t.end.bytes += len(by)
	m.bytes += len(by) // beyond the bound, if need be: what is used must be remembered
	return t.told(now), nil
}

// Inspect implements [coord.TokenStore].
func (m *Store) Inspect(ctx context.Context, key coord.TokenKey) (coord.Token, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return coord.Token{}, err
	}
	defer m.mu.Unlock()
	t := m.tokens[key]
	if t == nil {
		return coord.Token{}, coord.ErrUnknown
	}
	return t.told(now), nil
}

// Revoke implements [coord.TokenStore].
func (m *Store) Revoke(ctx context.Context, key coord.TokenKey) error {
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	t := m.tokens[key]
	if t == nil {
		return coord.ErrUnknown
	}
	switch state := t.state(now); state {
	case coord.Usable:
		t.Revoked = now
	case coord.Used, coord.Expired:
		return state.Err()
	}
	return nil
}

func (t *token) state(now time.Time) coord.State {
	switch {
	case !t.Used.IsZero():
		return coord.Used
	case !t.Revoked.IsZero():
		return coord.Revoked
	case !now.Before(t.Expires):
		return coord.Expired
	}
	return coord.Usable
}

// told returns the token for a caller.
func (t *token) told(now time.Time) coord.Token {
	told := t.Token
	told.State = t.state(now)
	told.Metadata = bytes.Clone(told.Metadata)
	return told
}
