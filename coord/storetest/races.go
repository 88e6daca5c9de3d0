package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lazyreq/lazyreq/coord"
)

// requireOne makes 50 concurrent calls of f. It fails the test unless one call succeeds and all others return the
// error other.
func requireOne(t *testing.T, other error, f func() error) {
	t.Helper()
	var odd atomic.Int64
	succeeded := runConcurrently(50, func(int) bool {
		err := f()
		if err != nil && !errors.Is(err, other) {
			odd.Add(1)
		}
		return err == nil
	})
	if succeeded != 1 || odd.Load() != 0 {
		t.Fatalf("%d of 50 calls succeeded, and %d failed with another error than %v", succeeded, odd.Load(), other)
	}
}

func testConcurrentAcquisitions(t *testing.T, s *subject) {
	for range 10 {
		winner := make(chan coord.LeaseRequest, 50)
		requireOne(t, coord.ErrHeld, func() error {
			r := s.newRequest("one")
			_, err := s.Acquire(t.Context(), "u", r)
			if err == nil {
				winner <- r
			}
			return err
		})
		requireNoError(t, s.Release(t.Context(), "u", <-winner))
	}
}

// testHoldersDontOverlap checks that a lease never has two holders while many goroutines acquire and release it, and
// that the fencing numbers grow.
func testHoldersDontOverlap(t *testing.T, s *subject) {
	var inside, last, got, wrong atomic.Int64
	runConcurrently(20, func(int) bool {
		for range 50 {
			r := s.newRequest("one")
			number, err := s.Acquire(t.Context(), "u", r)
			if errors.Is(err, coord.ErrHeld) {
				continue
			}
			if err != nil || inside.Add(1) != 1 || last.Swap(number) >= number {
				wrong.Add(1)
			}
			got.Add(1)
			inside.Add(-1)
			if s.Release(t.Context(), "u", r) != nil {
				wrong.Add(1)
			}
		}
		return true
	})
	if wrong.Load() != 0 || got.Load() == 0 {
		t.Fatalf("of %d holders, %d were not alone, or had a number that was not the largest", got.Load(), wrong.Load())
	}
}

func testEndedContext(t *testing.T, s *subject) {
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	key, r := s.issue(t, ""), s.newRequest("one")
	requireErrorIs(t, s.Issue(ctx, newKey(), nil, s.units(1), 0), left)
	_, err := s.Use(ctx, key, "")
	requireErrorIs(t, err, left)
	_, err = s.Inspect(ctx, key)
	requireErrorIs(t, err, left)
	requireErrorIs(t, s.Revoke(ctx, key), left)
	s.requireState(t, key, coord.Usable)

	_, err = s.Acquire(ctx, "u", r)
	requireErrorIs(t, err, left)
	s.mustAcquire(t, "u", r)
	requireErrorIs(t, s.Renew(ctx, "u", r), left)
	requireErrorIs(t, s.Release(ctx, "u", r), left)
	s.requireHolder(t, "u", "one")
}

// requireAll makes 40 concurrent calls of f, for tokens or leases with different names. It fails the test unless all
// return true.
func requireAll(t *testing.T, action string, f func(k int, name string) bool) {
	t.Helper()
	if yes := runConcurrently(40, func(k int) bool { return f(k, fmt.Sprint("number ", k)) }); yes != 40 {
		t.Fatalf("%s: %d of 40 concurrent calls got a reply that is not theirs", action, 40-yes)
	}
}

func testConcurrentTokensAreSeparate(t *testing.T, s *subject) {
	var keys [40]coord.TokenKey
	requireAll(t, "Issue", func(k int, name string) bool {
		keys[k] = newKey()
		return s.Issue(t.Context(), keys[k], []byte(name), s.units(10+k), s.units(100+k)) == nil
	})
	requireAll(t, "Inspect", func(k int, name string) bool {
		tok, err := s.Inspect(t.Context(), keys[k])
		return err == nil && string(tok.Metadata) == name &&
			tok.Expires.Sub(tok.Issued) == s.units(10+k) && tok.Forgotten.Sub(tok.Expires) == s.units(100+k)
	})
	requireAll(t, "Use or Revoke", func(k int, name string) bool {
		if k%2 == 0 {
			return s.Revoke(t.Context(), keys[k]) == nil
		}
		tok, err := s.Use(t.Context(), keys[k], name)
		return err == nil && string(tok.Metadata) == name && tok.UsedBy == name
	})
	requireAll(t, "Revoke", func(k int, _ string) bool {
		err := s.Revoke(t.Context(), keys[k])
		return k%2 == 0 && err == nil || k%2 == 1 && errors.Is(err, coord.ErrUsed)
	})
}

func testConcurrentLeasesAreSeparate(t *testing.T, s *subject) {
	var requests [40]coord.LeaseRequest
	requireAll(t, "Acquire", func(k int, name string) bool {
		requests[k] = s.newRequest(name)
		requests[k].Lifetime = s.units(10 + k)
		_, err := s.Acquire(t.Context(), name, requests[k])
		return err == nil
	})
	requireAll(t, "Acquire again", func(k int, name string) bool {
		var denied *coord.DeniedError
		_, err := s.Acquire(t.Context(), name, s.newRequest("another"))
		return errors.As(err, &denied) && denied.Holder == name && denied.RetryAfter.Round(s.units(1)) == s.units(10+k)
	})
	requireAll(t, "Renew", func(k int, name string) bool { return s.Renew(t.Context(), name, requests[k]) == nil })
	requireAll(t, "Release", func(k int, name string) bool {
		other := s.Release(t.Context(), name, requests[(k+1)%40])
		return errors.Is(other, coord.ErrLost) && s.Release(t.Context(), name, requests[k]) == nil
	})
}
