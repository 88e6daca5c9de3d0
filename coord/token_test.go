package coord_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
)

func TestNewID(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := coord.NewID()
		require.Regexp(t, regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`), id)
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestEmptyID(t *testing.T) {
	tokens := newTokens(t, newMemory(t, memstore.Options{}))
	require.ErrorIs(t, tokens.Issue(t.Context(), "", nil, time.Minute), coord.ErrInvalid)
	_, err := tokens.Use(t.Context(), "", "")
	require.ErrorIs(t, err, coord.ErrInvalid)
	_, err = tokens.Inspect(t.Context(), "")
	require.ErrorIs(t, err, coord.ErrInvalid)
	require.ErrorIs(t, tokens.Revoke(t.Context(), ""), coord.ErrInvalid)
	_, err = coord.NewTokens(nil)
	require.ErrorContains(t, err, "store is nil")
	_, err = coord.NewTokens((*memstore.Store)(nil))
	require.ErrorContains(t, err, "store is nil")
}

// TestUsedTokenIsRemembered checks that a token is remembered for its ttl after it expires, and for a day at most.
func TestUsedTokenIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := newTokens(t, newMemory(t, memstore.Options{}))
		for ttl, keep := range map[time.Duration]time.Duration{
			time.Second: time.Second, 24 * time.Hour: 24 * time.Hour, 1000 * time.Hour: 24 * time.Hour,
		} {
			id := coord.NewID()
			require.NoError(t, tokens.Issue(t.Context(), id, nil, ttl))
			tok := must(tokens.Inspect(t.Context(), id))
			require.Equal(t, ttl, tok.Expires.Sub(tok.Issued))
			require.Equal(t, keep, tok.Forgotten.Sub(tok.Expires))
			pass(ttl + keep - 1)
			_, err := tokens.Use(t.Context(), id, "")
			require.ErrorIs(t, err, coord.ErrExpired)
			pass(1)
			_, err = tokens.Use(t.Context(), id, "")
			require.ErrorIs(t, err, coord.ErrUnknown)
		}
	})
}

func TestKeysAreRedacted(t *testing.T) {
	var key coord.TokenKey
	copy(key[:], "s3cret")
	for _, verb := range []string{"%v", "%s", "%x", "%q", "%#v", "%+v"} {
		require.Equal(t, "[redacted]", fmt.Sprintf(verb, key))
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("token", "key", key)
	require.NotContains(t, log.String(), "s3cret")
}

func TestStateNames(t *testing.T) {
	names := map[string]bool{}
	for s := range coord.Revoked + 1 {
		names[s.String()] = true
	}
	require.Equal(t, map[string]bool{"unknown": true, "usable": true, "used": true, "expired": true, "revoked": true}, names)
}

// TestErrorsAreResponses checks the HTTP status of each error.
func TestErrorsAreResponses(t *testing.T) {
	status := func(err error) int {
		var p interface {
			Problem() (int, map[string]any)
		}
		require.ErrorAs(t, fmt.Errorf("wrapped: %w", err), &p)
		code, _ := p.Problem()
		return code
	}
	soon := &coord.DeniedError{Reason: coord.ErrTooSoon, RetryAfter: 1001 * time.Millisecond}
	held := &coord.DeniedError{Reason: coord.ErrHeld, RetryAfter: time.Second, Holder: "host:7"}
	for err, want := range map[error]int{
		coord.ErrInvalid: 400, coord.ErrUnknown: 404, coord.ErrUsed: 409, coord.ErrExists: 409,
		coord.ErrExpired: 410, coord.ErrRevoked: 410, coord.ErrStore: 503, soon: 429, held: 409,
		fmt.Errorf("%w: %w", coord.ErrStore, errors.New("cause")): 503,
	} {
		require.Equal(t, want, status(err), "%v", err)
	}
	_, members := coord.ErrUsed.(interface{ Problem() (int, map[string]any) }).Problem()
	require.Equal(t, map[string]any{"detail": "This token has already been used."}, members)
	_, members = soon.Problem()
	require.Contains(t, members["detail"], "in 2 s")
	require.EqualValues(t, 2, soon.RetrySeconds())
	require.EqualValues(t, 1, (&coord.DeniedError{}).RetrySeconds())
	_, members = held.Problem()
	require.NotContains(t, fmt.Sprint(members), "host")
	require.Equal(t, "coord: the lease is held by host:7: retry after 1s", held.Error())
	require.ErrorIs(t, held, coord.ErrHeld)
}

func TestInvalidTokens(t *testing.T) {
	m := newMemory(t, memstore.Options{})
	tokens, id := newTokens(t, m), coord.NewID()
	for _, ttl := range []time.Duration{0, -1, time.Microsecond, -time.Hour, coord.MaxTime + 1, math.MaxInt64} {
		require.ErrorIs(t, tokens.Issue(t.Context(), id, nil, ttl), coord.ErrInvalid)
	}
	require.ErrorIs(t, tokens.Issue(t.Context(), id, make([]byte, coord.MaxMetadata+1), time.Minute), coord.ErrInvalid)
	require.Zero(t, m.Len())
	require.NoError(t, tokens.Issue(t.Context(), id, nil, time.Minute))
	_, err := tokens.Use(t.Context(), id, strings.Repeat("a", coord.MaxName+1))
	require.ErrorIs(t, err, coord.ErrInvalid)
	token := must(tokens.Inspect(t.Context(), id))
	require.Equal(t, coord.Usable, token.State)
}
