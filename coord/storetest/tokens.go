package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/lazyreq/lazyreq/coord"
)

// issue makes a token for ten units, which is kept for ten more.
func (s *subject) issue(t *testing.T, metadata string) coord.TokenKey {
	t.Helper()
	key := newKey()
	must(t, s.Issue(t.Context(), key, []byte(metadata), s.units(10), s.units(10)))
	return key
}

// in fails unless Inspect returns the token in this state.
func (s *subject) in(t *testing.T, key coord.TokenKey, state coord.State) coord.Token {
	t.Helper()
	tok, err := s.Inspect(t.Context(), key)
	must(t, err)
	if tok.State != state {
		t.Fatalf("the token is %v, not %v", tok.State, state)
	}
	if (tok.Used.IsZero()) == (state == coord.Used) || (tok.Revoked.IsZero()) == (state == coord.Revoked) {
		t.Fatalf("a token that is %v was used at %v and revoked at %v", state, tok.Used, tok.Revoked)
	}
	return tok
}

// refused fails unless the token can't be used, for that reason.
func (s *subject) refused(t *testing.T, key coord.TokenKey, want error) {
	t.Helper()
	tok, err := s.Use(t.Context(), key, "late")
	is(t, err, want)
	if tok.Metadata != nil {
		t.Fatalf("a use that failed returned the metadata %q", tok.Metadata)
	}
}

func (s *subject) gone(t *testing.T, key coord.TokenKey) {
	t.Helper()
	s.refused(t, key, coord.ErrUnknown)
	_, err := s.Inspect(t.Context(), key)
	is(t, err, coord.ErrUnknown)
	is(t, s.Revoke(t.Context(), key), coord.ErrUnknown)
}

func unknown(t *testing.T, s *subject) {
	key := newKey()
	s.gone(t, key)
	s.gone(t, key)
	must(t, s.Issue(t.Context(), key, nil, s.units(10), 0)) // nothing is in the way
}

func issued(t *testing.T, s *subject) {
	const metadata = "\x00\xff any bytes\r\n"
	tok := s.in(t, s.issue(t, metadata), coord.Usable)
	if string(tok.Metadata) != metadata {
		t.Fatalf("the metadata is %q", tok.Metadata)
	}
	if tok.Expires.Sub(tok.Issued) != s.units(10) || tok.Forgotten.Sub(tok.Expires) != s.units(10) {
		t.Fatalf("issued at %v, expires at %v, forgotten at %v", tok.Issued, tok.Expires, tok.Forgotten)
	}
	key := newKey()
	must(t, s.Issue(t.Context(), key, make([]byte, coord.MaxMetadata), coord.MaxTime, coord.MaxTime))
	if n := len(s.in(t, key, coord.Usable).Metadata); n != coord.MaxMetadata {
		t.Fatalf("the metadata has %d bytes", n)
	}
}

func usedOnce(t *testing.T, s *subject) {
	key := s.issue(t, "a vm")
	s.advance(t, 9)
	tok, err := s.Use(t.Context(), key, "ada")
	must(t, err)
	if string(tok.Metadata) != "a vm" || tok.State != coord.Used || tok.UsedBy != "ada" {
		t.Fatalf("used: %+v", tok)
	}
	s.about(t, tok.Used.Sub(tok.Issued)-s.host.Unit/2, 9) // may have taken longer
	for range 2 {
		late, err := s.Use(t.Context(), key, "eve")
		is(t, err, coord.ErrUsed)
		if late.UsedBy != "ada" || !late.Used.Equal(tok.Used) || late.Metadata != nil {
			t.Fatalf("used again: %+v", late)
		}
	}
	is(t, s.Revoke(t.Context(), key), coord.ErrUsed)
	if tok := s.in(t, key, coord.Used); tok.UsedBy != "ada" || string(tok.Metadata) != "a vm" {
		t.Fatalf("inspected: %+v", tok)
	}
}

func expires(t *testing.T, s *subject) {
	key := s.issue(t, "a vm")
	s.advance(t, 10)
	for range 2 {
		s.refused(t, key, coord.ErrExpired)
		is(t, s.Revoke(t.Context(), key), coord.ErrExpired)
		s.in(t, key, coord.Expired)
		s.advance(t, 4)
	}
	s.advance(t, 2)
	s.gone(t, key)
	must(t, s.Issue(t.Context(), key, nil, s.units(10), 0))
	_, err := s.Use(t.Context(), key, "")
	must(t, err)
}

func usedRemembered(t *testing.T, s *subject) {
	key := s.issue(t, "")
	_, err := s.Use(t.Context(), key, "ada")
	must(t, err)
	s.advance(t, 19)
	s.refused(t, key, coord.ErrUsed)
	s.in(t, key, coord.Used)
	s.advance(t, 1)
	s.gone(t, key)
}

func notKept(t *testing.T, s *subject) {
	key := newKey()
	must(t, s.Issue(t.Context(), key, nil, s.units(10), 0))
	s.advance(t, 9)
	s.in(t, key, coord.Usable)
	s.advance(t, 1)
	s.gone(t, key)
}

func revoked(t *testing.T, s *subject) {
	key := s.issue(t, "a vm")
	must(t, s.Revoke(t.Context(), key))
	s.refused(t, key, coord.ErrRevoked)
	must(t, s.Revoke(t.Context(), key))
	s.in(t, key, coord.Revoked)
	s.advance(t, 19)
	s.refused(t, key, coord.ErrRevoked)
	s.advance(t, 1)
	s.gone(t, key)
}

func issuedAgain(t *testing.T, s *subject) {
	usable, used, withdrawn := s.issue(t, "1"), s.issue(t, "1"), s.issue(t, "1")
	_, err := s.Use(t.Context(), used, "")
	must(t, err)
	must(t, s.Revoke(t.Context(), withdrawn))
	for range 2 { // the second time, they have expired
		for _, key := range []coord.TokenKey{usable, used, withdrawn} {
			is(t, s.Issue(t.Context(), key, []byte("2"), s.units(100), 0), coord.ErrExists)
		}
		if tok, _ := s.Inspect(t.Context(), usable); string(tok.Metadata) != "1" {
			t.Fatalf("the metadata was replaced by %q", tok.Metadata)
		}
		s.refused(t, used, coord.ErrUsed)
		s.refused(t, withdrawn, coord.ErrRevoked)
		s.advance(t, 10)
	}
}

func isolation(t *testing.T, s *subject) {
	key, metadata := newKey(), []byte("a vm")
	must(t, s.Issue(t.Context(), key, metadata, s.units(10), 0))
	copy(metadata, "evil")
	tok, err := s.Inspect(t.Context(), key)
	must(t, err)
	copy(tok.Metadata, "evil")
	tok, err = s.Use(t.Context(), key, "")
	must(t, err)
	copy(tok.Metadata, "evil")
	if tok := s.in(t, key, coord.Used); string(tok.Metadata) != "a vm" {
		t.Fatalf("the metadata became %q", tok.Metadata)
	}
}

func largestToken(t *testing.T, s *subject) {
	key := newKey()
	must(t, s.Issue(t.Context(), key, make([]byte, coord.MaxMetadata), coord.MaxTime, coord.MaxTime))
	_, err := s.Use(t.Context(), key, strings.Repeat("a", coord.MaxName))
	must(t, err)
}

func concurrentUses(t *testing.T, s *subject) {
	for range 10 {
		key := s.issue(t, "a vm")
		if n := together(50, func(int) bool {
			tok, err := s.Use(t.Context(), key, "the same")
			return err == nil && string(tok.Metadata) == "a vm" || err != nil && !errors.Is(err, coord.ErrUsed)
		}); n != 1 {
			t.Fatalf("%d of 50 uses succeeded, or failed with another error than ErrUsed", n)
		}
	}
}

func concurrentIssues(t *testing.T, s *subject) {
	key := newKey()
	if n := together(50, func(int) bool {
		return !errors.Is(s.Issue(t.Context(), key, nil, s.units(10), 0), coord.ErrExists)
	}); n != 1 {
		t.Fatalf("%d of 50 issues succeeded, or failed with another error than ErrExists", n)
	}
}

func useOrRevoke(t *testing.T, s *subject) {
	for range 20 {
		key := s.issue(t, "")
		var used, revoked error
		together(2, func(k int) bool {
			if k == 0 {
				_, used = s.Use(t.Context(), key, "")
			} else {
				revoked = s.Revoke(t.Context(), key)
			}
			return true
		})
		if used == nil {
			is(t, revoked, coord.ErrUsed)
		} else {
			is(t, used, coord.ErrRevoked)
			must(t, revoked)
		}
	}
}
