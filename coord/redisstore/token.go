package redisstore

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

func tokenName(k coord.TokenKey) string { return "token:" + base64.RawURLEncoding.EncodeToString(k[:]) }

// Issue implements [coord.TokenStore].
func (s *Store) Issue(ctx context.Context, key coord.TokenKey, metadata []byte, ttl, keep time.Duration) error {
	r, err := s.run(ctx, issueScript, tokenName(key), string(metadata), ttl.Microseconds(), keep.Microseconds())
	if err != nil {
		return err
	}
	switch issued := r.int(); {
	case r.end() != nil || issued < 0 || issued > 1:
		return errUnreadable
	case issued == 0:
		return coord.ErrExists
	}
	return nil
}

// Use implements [coord.TokenStore].
func (s *Store) Use(ctx context.Context, key coord.TokenKey, by string) (coord.Token, error) {
	t, err := s.token(s.run(ctx, useScript, tokenName(key), by))
	switch {
	case err != nil:
		return coord.Token{}, err
	case t.State != coord.Usable:
		t.Metadata = nil
		return t, t.State.Err()
	}
	t.State = coord.Used
	return t, nil
}

// Inspect implements [coord.TokenStore].
func (s *Store) Inspect(ctx context.Context, key coord.TokenKey) (coord.Token, error) {
	return s.token(s.run(ctx, inspectScript, tokenName(key)))
}

// Revoke implements [coord.TokenStore].
func (s *Store) Revoke(ctx context.Context, key coord.TokenKey) error {
	r, err := s.run(ctx, revokeScript, tokenName(key))
	if err != nil {
		return err
	}
	switch before := coord.State(r.int()); {
	case r.end() != nil || before < 0 || before > coord.Revoked:
		return errUnreadable
	case before == coord.Revoked:
		return nil
	default:
		return before.Err()
	}
}

// token reads the reply of a script that returns a token; ErrUnknown for none.
func (s *Store) token(r *reply, err error) (coord.Token, error) {
	if err != nil {
		return coord.Token{}, err
	}
	state := coord.State(r.int())
	if state == 0 && r.end() == nil {
		return coord.Token{}, coord.ErrUnknown
	}
	t := coord.Token{
		State: state, Metadata: []byte(r.string()), Issued: r.time(), Expires: r.time(), Forgotten: r.time(),
		Used: r.time(), UsedBy: r.string(), Revoked: r.time(),
	}
	if r.end() != nil || t.State < coord.Usable || t.State > coord.Revoked {
		return coord.Token{}, errUnreadable
	}
	return t, nil
}
