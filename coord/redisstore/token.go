package redisstore

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

func tokenName(k coord.TokenKey) string { return "token:" + base64.RawURLEncoding.EncodeToString(k[:]) }

// Issue implements [coord.TokenStore].
func (s *Store) Issue(ctx context.Context, key coord.TokenKey, metadata []byte, ttl, keep time.Duration) error {
	issued, err := s.runStatus(ctx, 1, issueScript, tokenName(key), string(metadata), ttl.Microseconds(), keep.Microseconds())
	if err == nil && issued == 0 {
		return coord.ErrExists
	}
	return err
}

// Use implements [coord.TokenStore].
func (s *Store) Use(ctx context.Context, key coord.TokenKey, by string) (coord.Token, error) {
	t, err := decodeToken(s.run(ctx, useScript, tokenName(key), by))
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
	return decodeToken(s.run(ctx, inspectScript, tokenName(key)))
}

// Revoke implements [coord.TokenStore].
func (s *Store) Revoke(ctx context.Context, key coord.TokenKey) error {
	before, err := s.runStatus(ctx, int64(coord.Revoked), revokeScript, tokenName(key))
	if err != nil || coord.State(before) == coord.Revoked {
		return err
	}
	return coord.State(before).Err()
}

// decodeToken reads the reply of a script that returns a token. It returns ErrUnknown if there is no token.
func decodeToken(r redispipe.Reader, err error) (coord.Token, error) {
	if err != nil {
		return coord.Token{}, err
	}
	state := coord.State(r.Int())
	if state == 0 && r.Done() {
		return coord.Token{}, coord.ErrUnknown
	}
	t := coord.Token{
		State: state, Metadata: []byte(r.Text()), Issued: r.Time(), Expires: r.Time(), Forgotten: r.Time(),
		Used: r.Time(), UsedBy: r.Text(), Revoked: r.Time(),
	}
	if !r.Done() || t.State < coord.Usable || t.State > coord.Revoked {
		return coord.Token{}, errUnreadable
	}
	return t, nil
}
