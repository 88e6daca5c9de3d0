package coord

import (
	"bytes"
	"context"
	"time"
)

// memoryToken is guarded by Memory.mu. State in its Token is not kept.
type memoryToken struct {
	Token
	end ending
}

// Issue implements [TokenStore].
func (m *Memory) Issue(ctx context.Context, key TokenKey, metadata []byte, ttl, keep time.Duration) error {
	if err := checkToken(metadata, ttl, keep); err != nil {
		return err
	}
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.tokens[key] != nil {
		return ErrExists
	}
	t := &memoryToken{Token: Token{Metadata: bytes.Clone(metadata), Issued: now, Expires: now.Add(ttl), Forgotten: now.Add(ttl + keep)}}
	t.end = ending{at: t.Forgotten, forget: func(m *Memory) { delete(m.tokens, key) }}
	if err := m.addLocked(&t.end, len(metadata)); err != nil {
		return err
	}
	m.tokens[key] = t
	return nil
}

// Use implements [TokenStore].
func (m *Memory) Use(ctx context.Context, key TokenKey, by string) (Token, error) {
	if err := checkName("who uses the token", by); err != nil {
		return Token{}, err
	}
	now, err := m.begin(ctx)
	if err != nil {
		return Token{}, err
	}
	defer m.mu.Unlock()
	t := m.tokens[key]
	if t == nil {
		return Token{}, ErrUnknown
	}
	if err := t.state(now).refusal(); err != nil {
		told := t.told(now)
		told.Metadata = nil
		return told, err
	}
	t.Used, t.UsedBy = now, by
	t.end.bytes += len(by)
	m.bytes += len(by) // beyond the bound, if need be: what is used must be remembered
	return t.told(now), nil
}

// Inspect implements [TokenStore].
func (m *Memory) Inspect(ctx context.Context, key TokenKey) (Token, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return Token{}, err
	}
	defer m.mu.Unlock()
	t := m.tokens[key]
	if t == nil {
		return Token{}, ErrUnknown
	}
	return t.told(now), nil
}

// Revoke implements [TokenStore].
func (m *Memory) Revoke(ctx context.Context, key TokenKey) error {
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	t := m.tokens[key]
	if t == nil {
		return ErrUnknown
	}
	switch state := t.state(now); state {
	case Usable:
		t.Revoked = now
	case Used, Expired:
		return state.refusal()
	}
	return nil
}

func (t *memoryToken) state(now time.Time) State {
	switch {
	case !t.Used.IsZero():
		return Used
	case !t.Revoked.IsZero():
		return Revoked
	case !now.Before(t.Expires):
		return Expired
	}
	return Usable
}

// told returns the token for a caller.
func (t *memoryToken) told(now time.Time) Token {
	told := t.Token
	told.State = t.state(now)
	told.Metadata = bytes.Clone(told.Metadata)
	return told
}
