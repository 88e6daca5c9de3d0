package coord

import (
	"context"
	"encoding/base64"
	"time"
)

// tokenReplies is how many elements parseToken reads: see token.lua.
const tokenReplies = 8

func (k TokenKey) name() string { return "token:" + base64.RawURLEncoding.EncodeToString(k[:]) }

// Issue implements [TokenStore].
func (s *Redis) Issue(ctx context.Context, key TokenKey, metadata []byte, ttl, keep time.Duration) error {
	if err := checkToken(metadata, ttl, keep); err != nil {
		return err
	}
	reply, err := s.run(ctx, issueScript, tokenReplies, key.name(), string(metadata), ttl.Microseconds(), keep.Microseconds())
	if err != nil {
		return err
	}
	switch t, err := parseToken(reply); {
	case err != nil:
		return err
	case t.State != 0:
		return ErrExists
	}
	return nil
}

// Use implements [TokenStore].
func (s *Redis) Use(ctx context.Context, key TokenKey, by string) (Token, error) {
	if err := checkName("who uses the token", by); err != nil {
		return Token{}, err
	}
	reply, err := s.run(ctx, useScript, tokenReplies, key.name(), by)
	if err != nil {
		return Token{}, err
	}
	t, err := parseToken(reply)
	switch {
	case err != nil || t.State == 0:
		return Token{}, refusalOr(err, t)
	case t.State != Usable:
		t.Metadata = nil
		return t, t.State.refusal()
	}
	t.State = Used
	return t, nil
}

// Inspect implements [TokenStore].
func (s *Redis) Inspect(ctx context.Context, key TokenKey) (Token, error) {
	reply, err := s.run(ctx, inspectScript, tokenReplies, key.name())
	if err != nil {
		return Token{}, err
	}
	t, err := parseToken(reply)
	if err != nil || t.State == 0 {
		return Token{}, refusalOr(err, t)
	}
	return t, nil
}

// Revoke implements [TokenStore].
func (s *Redis) Revoke(ctx context.Context, key TokenKey) error {
	reply, err := s.run(ctx, revokeScript, tokenReplies, key.name())
	if err != nil {
		return err
	}
	t, err := parseToken(reply)
	if err == nil && (t.State == Usable || t.State == Revoked) {
		return nil
	}
	return refusalOr(err, t)
}

// refusalOr returns err, or why the token can't be used.
func refusalOr(err error, t Token) error {
	if err != nil {
		return err
	}
	return t.State.refusal()
}

// parseToken reads what a script on tokens returns.
func parseToken(v values) (Token, error) {
	var bad bool
	t := Token{
		State: State(v.int(0, &bad)), Metadata: []byte(v.string(1, &bad)),
		Issued: v.time(2, &bad), Expires: v.time(3, &bad), Forgotten: v.time(4, &bad),
		Used: v.time(5, &bad), UsedBy: v.string(6, &bad), Revoked: v.time(7, &bad),
	}
	if bad || t.State < 0 || t.State > Revoked {
		return Token{}, errUnreadable
	}
	return t, nil
}
