package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/lazyreq/lazyreq/coord"
)

// issue issues a token that can be used for ten units and is remembered for ten more.
func (s *subject) issue(t *testing.T, metadata string) coord.TokenKey {
	t.Helper()
	key := newKey()
	requireNoError(t, s.Issue(t.Context(), key, []byte(metadata), s.units(10), s.units(10)))
	return key
}

// requireState fails the test unless Inspect returns the token in this state.
func (s *subject) requireState(t *testing.T, key coord.TokenKey, state coord.State) coord.Token {
	t.Helper()
	tok, err := s.Inspect(t.Context(), key)
	requireNoError(t, err)
	if tok.State != state {
		t.Fatalf("the token is %v, not %v", tok.State, state)
	}
	if (tok.Used.IsZero()) == (state == coord.Used) || (tok.Revoked.IsZero()) == (state == coord.Revoked) {
		t.Fatalf("a token that is %v was used at %v and revoked at %v", state, tok.Used, tok.Revoked)
	}
	return tok
}

// requireUseFails fails the test unless a use of the token fails with the error want.
func (s *subject) requireUseFails(t *testing.T, key coord.TokenKey, want error) {
	t.Helper()
	tok, err := s.Use(t.Context(), key, "late")
	requireErrorIs(t, err, want)
	if tok.Metadata != nil {
		t.Fatalf("a use that failed returned the metadata %q", tok.Metadata)
	}
}

func (s *subject) requireUnknown(t *testing.T, key coord.TokenKey) {
	t.Helper()
	s.requireUseFails(t, key, coord.ErrUnknown)
	_, err := s.Inspect(t.Context(), key)
	requireErrorIs(t, err, coord.ErrUnknown)
	requireErrorIs(t, s.Revoke(t.Context(), key), coord.ErrUnknown)
}

func testUnknownToken(t *testing.T, s *subject) {
	key := newKey()
	s.requireUnknown(t, key)
	s.requireUnknown(t, key)
	requireNoError(t, s.Issue(t.Context(), key, nil, s.units(10), 0)) // the failed calls have left nothing that prevents it
}

func testIssuedToken(t *testing.T, s *subject) {
	const metadata = "\x00\xff any bytes\r\n"
	tok := s.requireState(t, s.issue(t, metadata), coord.Usable)
	if string(tok.Metadata) != metadata {
		t.Fatalf("the metadata is %q", tok.Metadata)
	}
	if tok.Expires.Sub(tok.Issued) != s.units(10) || tok.Forgotten.Sub(tok.Expires) != s.units(10) {
		t.Fatalf("issued at %v, expires at %v, forgotten at %v", tok.Issued, tok.Expires, tok.Forgotten)
	}
	largest := newKey()
	requireNoError(t, s.Issue(t.Context(), largest, make([]byte, coord.MaxMetadata), coord.MaxTime, coord.MaxTime))
	tok, err := s.Use(t.Context(), largest, strings.Repeat("a", coord.MaxName))
	requireNoError(t, err)
	if len(tok.Metadata) != coord.MaxMetadata || len(tok.UsedBy) != coord.MaxName {
		t.Fatalf("%d bytes of metadata, used by a name of %d bytes", len(tok.Metadata), len(tok.UsedBy))
	}
}

func testUseOnce(t *testing.T, s *subject) {
	key := s.issue(t, "a vm")
	s.advance(t, 9)
	tok, err := s.Use(t.Context(), key, "ada")
	requireNoError(t, err)
	if string(tok.Metadata) != "a vm" || tok.State != coord.Used || tok.UsedBy != "ada" {
		t.Fatalf("used: %+v", tok)
	}
	s.requireAbout(t, tok.Used.Sub(tok.Issued)-s.host.Unit/2, 9) // the use may have happened half a unit later
	for range 2 {
		late, err := s.Use(t.Context(), key, "eve")
		requireErrorIs(t, err, coord.ErrUsed)
		if late.UsedBy != "ada" || !late.Used.Equal(tok.Used) || late.Metadata != nil {
			t.Fatalf("used again: %+v", late)
		}
	}
	requireErrorIs(t, s.Revoke(t.Context(), key), coord.ErrUsed)
	if tok := s.requireState(t, key, coord.Used); tok.UsedBy != "ada" || string(tok.Metadata) != "a vm" {
		t.Fatalf("inspected: %+v", tok)
	}
}

func testTokenExpiry(t *testing.T, s *subject) {
	key := s.issue(t, "a vm")
	s.advance(t, 10)
	for range 2 {
		s.requireUseFails(t, key, coord.ErrExpired)
		requireErrorIs(t, s.Revoke(t.Context(), key), coord.ErrExpired)
		s.requireState(t, key, coord.Expired)
		s.advance(t, 4)
	}
	s.advance(t, 2)
	s.requireUnknown(t, key)
	requireNoError(t, s.Issue(t.Context(), key, nil, s.units(10), 0))
	_, err := s.Use(t.Context(), key, "")
	requireNoError(t, err)
}

func testTokenForgotten(t *testing.T, s *subject) {
	used, notKept := s.issue(t, ""), newKey()
	_, err := s.Use(t.Context(), used, "ada")
	requireNoError(t, err)
	requireNoError(t, s.Issue(t.Context(), notKept, nil, s.units(10), 0))
	s.advance(t, 9)
	s.requireState(t, notKept, coord.Usable)
	s.advance(t, 1)
	s.requireUnknown(t, notKept)
	s.advance(t, 9)
	s.requireUseFails(t, used, coord.ErrUsed)
	s.requireState(t, used, coord.Used)
	s.advance(t, 1)
	s.requireUnknown(t, used)
}

func testRevokedToken(t *testing.T, s *subject) {
	key := s.issue(t, "a vm")
	requireNoError(t, s.Revoke(t.Context(), key))
	s.requireUseFails(t, key, coord.ErrRevoked)
	requireNoError(t, s.Revoke(t.Context(), key))
	s.requireState(t, key, coord.Revoked)
	s.advance(t, 19)
	s.requireUseFails(t, key, coord.ErrRevoked)
	s.advance(t, 1)
	s.requireUnknown(t, key)
}

func testIssueTwice(t *testing.T, s *subject) {
	usable, used, withdrawn := s.issue(t, "1"), s.issue(t, "1"), s.issue(t, "1")
	_, err := s.Use(t.Context(), used, "")
	requireNoError(t, err)
	requireNoError(t, s.Revoke(t.Context(), withdrawn))
	for range 2 { // the second time, the tokens have expired
		for _, key := range []coord.TokenKey{usable, used, withdrawn} {
			requireErrorIs(t, s.Issue(t.Context(), key, []byte("2"), s.units(100), 0), coord.ErrExists)
		}
		if tok, _ := s.Inspect(t.Context(), usable); string(tok.Metadata) != "1" {
			t.Fatalf("the metadata was replaced by %q", tok.Metadata)
		}
		s.requireUseFails(t, used, coord.ErrUsed)
		s.requireUseFails(t, withdrawn, coord.ErrRevoked)
		s.advance(t, 10)
	}
}

func testMetadataCopied(t *testing.T, s *subject) {
	key, metadata := newKey(), []byte("a vm")
	requireNoError(t, s.Issue(t.Context(), key, metadata, s.units(10), 0))
	copy(metadata, "evil")
	tok, err := s.Inspect(t.Context(), key)
	requireNoError(t, err)
	copy(tok.Metadata, "evil")
	tok, err = s.Use(t.Context(), key, "")
	requireNoError(t, err)
	copy(tok.Metadata, "evil")
	if tok := s.requireState(t, key, coord.Used); string(tok.Metadata) != "a vm" {
		t.Fatalf("the metadata became %q", tok.Metadata)
	}
}

func testConcurrentUses(t *testing.T, s *subject) {
	for range 10 {
		key := s.issue(t, "a vm")
		requireOne(t, coord.ErrUsed, func() error {
			tok, err := s.Use(t.Context(), key, "the same")
			if err == nil && string(tok.Metadata) != "a vm" {
				err = errors.New("other metadata")
			}
			return err
		})
	}
}

func testConcurrentIssues(t *testing.T, s *subject) {
	key := newKey()
	requireOne(t, coord.ErrExists, func() error { return s.Issue(t.Context(), key, nil, s.units(10), 0) })
}

func testConcurrentUseAndRevoke(t *testing.T, s *subject) {
	for range 20 {
		key := s.issue(t, "")
		var used, revoked error
		runConcurrently(2, func(k int) bool {
			if k == 0 {
				_, used = s.Use(t.Context(), key, "")
			} else {
				revoked = s.Revoke(t.Context(), key)
			}
			return true
		})
		if used == nil {
			requireErrorIs(t, revoked, coord.ErrUsed)
		} else {
			requireErrorIs(t, used, coord.ErrRevoked)
			requireNoError(t, revoked)
		}
	}
}
