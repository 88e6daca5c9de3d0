package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// token is a token of the store. It is guarded by Store.mu. Its State is not set; the method state returns it.
type token struct {
	record
	coord.Token
}

// Issue implements [coord.TokenStore].
func (m *Store) Issue(ctx context.Context, key coord.TokenKey, metadata []byte, ttl, keep time.Duration) error {
	now, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.tokens[key] != nil {
		return coord.ErrExists
	}
	t := &token{Token: coord.Token{Metadata: bytes.Clone(metadata), Issued: now, Expires: now.Add(ttl), Forgotten: now.Add(ttl + keep)}}
	t.record = record{expires: t.Forgotten, remove: func() { delete(m.tokens, key) }}
	if err := m.addLocked(&t.record, len(metadata)); err != nil {
		return err
	}
	m.tokens[key] = t
	return nil
}

// lockToken locks m.mu and returns a token. If it returns an error, m.mu is not locked.
func (m *Store) lockToken(ctx context.Context, key coord.TokenKey) (t *token, now time.Time, err error) {
	if now, err = m.lock(ctx); err != nil {
		return nil, now, err
	}
	if t = m.tokens[key]; t == nil {
		m.mu.Unlock()
		return nil, now, coord.ErrUnknown
	}
	return t, now, nil
}

// Use implements [coord.TokenStore].
func (m *Store) Use(ctx context.Context, key coord.TokenKey, by string) (coord.Token, error) {
	t, now, err := m.lockToken(ctx, key)
	if err != nil {
		return coord.Token{}, err
	}
	defer m.mu.Unlock()
	if err := t.state(now).Err(); err != nil {
		found := t.clone(now)
		found.Metadata = nil
		return found, err
	}
	t.Used, t.UsedBy = now, by
	m.growLocked(&t.record, len(by))
	return t.clone(now), nil
}

// Inspect implements [coord.TokenStore].
func (m *Store) Inspect(ctx context.Context, key coord.TokenKey) (coord.Token, error) {
	t, now, err := m.lockToken(ctx, key)
	if err != nil {
		return coord.Token{}, err
	}
	defer m.mu.Unlock()
	return t.clone(now), nil
}

// Revoke implements [coord.TokenStore].
func (m *Store) Revoke(ctx context.Context, key coord.TokenKey) error {
	t, now, err := m.lockToken(ctx, key)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
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
	case !now.Before(t.Token.Expires):
		return coord.Expired
	}
	return coord.Usable
}

// clone returns a copy of the token, with its State.
func (t *token) clone(now time.Time) coord.Token {
	c := t.Token
	c.State, c.Metadata = t.state(now), bytes.Clone(c.Metadata)
	return c
}
