package coord

import (
	"context"
	"encoding/base64"
	"time"
)

func (k TokenKey) name() string { return "token:" + base64.RawURLEncoding.EncodeToString(k[:]) }

// Issue implements [TokenStore].
func (s *Redis) Issue(ctx context.Context, key TokenKey, metadata []byte, ttl, keep time.Duration) error {
	if err := checkToken(metadata, ttl, keep); err != nil {
		return err
	}
	r, err := s.run(ctx, issueScript, key.name(), string(metadata), ttl.Microseconds(), keep.Microseconds())
	if err != nil {
		return err
	}
	switch issued := r.int(); {
	case r.end() != nil || issued < 0 || issued > 1:
		return errUnreadable
	case issued == 0:
		return ErrExists
	}
	return nil
}

// Use implements [TokenStore].
func (s *Redis) Use(ctx context.Context, key TokenKey, by string) (Token, error) {
	if err := checkName("who uses the token", by); err != nil {
		return Token{}, err
	}
	t, err := s.token(s.run(ctx, useScript, key.name(), by))
	switch {
	case err != nil:
		return Token{}, err
	case t.State != Usable:
		t.Metadata = nil
		return t, t.State.refusal()
	}
	t.State = Used
	return t, nil
}

// Inspect implements [TokenStore].
func (s *Redis) Inspect(ctx context.Context, key TokenKey) (Token, error) {
	return s.token(s.run(ctx, inspectScript, key.name()))
}

// Revoke implements [TokenStore].
func (s *Redis) Revoke(ctx context.Context, key TokenKey) error {
	r, err := s.run(ctx, revokeScript, key.name())
	if err != nil {
		return err
	}
	switch before := State(r.int()); {
	case r.end() != nil || before < 0 || before > Revoked:
		return errUnreadable
	case before == Revoked:
		return nil
	default:
		return before.refusal()
	}
}

// token reads the reply of a script that returns a token; ErrUnknown for none.
func (s *Redis) token(r *reply, err error) (Token, error) {
	if err != nil {
		return Token{}, err
	}
	state := State(r.int())
	if state == 0 && r.end() == nil {
		return Token{}, ErrUnknown
	}
	t := Token{
		State: state, Metadata: []byte(r.string()), Issued: r.time(), Expires: r.time(), Forgotten: r.time(),
		Used: r.time(), UsedBy: r.string(), Revoked: r.time(),
	}
	if r.end() != nil || t.State < Usable || t.State > Revoked {
		return Token{}, errUnreadable
	}
	return t, nil
}
