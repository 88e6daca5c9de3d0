package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lazyreq/lazyreq/coord"
)

func testConcurrentAcquisitions(t *testing.T, s *subject) {
	for range 10 {
		var winner atomic.Pointer[coord.LeaseRequest]
		if n := runConcurrently(50, func(int) bool {
			r := s.newRequest("one")
			_, err := s.Acquire(t.Context(), "u", r)
			if err == nil {
				winner.Store(&r)
			}
			return !errors.Is(err, coord.ErrHeld)
		}); n != 1 {
			t.Fatalf("%d of 50 acquisitions succeeded, or failed with another error than ErrHeld", n)
		}
		requireNoError(t, s.Release(t.Context(), "u", *winner.Load()))
	}
}

// Many goroutines acquire and release one lease. There are never two holders, and the fencing numbers grow in the order of
// the grants.
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

// Many calls of one kind run at the same time, each with its own arguments.
func testConcurrentCallsAreSeparate(t *testing.T, s *subject) {
	const n = 40
	keys, requests := make([]coord.TokenKey, n), make([]coord.LeaseRequest, n)
	each := func(what string, f func(k int, name string) bool) {
		t.Helper()
		if yes := runConcurrently(n, func(k int) bool { return f(k, fmt.Sprint("number ", k)) }); yes != n {
			t.Fatalf("%s: %d of %d calls got something that is not theirs", what, n-yes, n)
		}
	}
	each("issue", func(k int, name string) bool {
		keys[k] = newKey()
		return s.Issue(t.Context(), keys[k], []byte(name), s.units(10+k), s.units(100+k)) == nil
	})
	each("inspect", func(k int, name string) bool {
		tok, err := s.Inspect(t.Context(), keys[k])
		return err == nil && string(tok.Metadata) == name &&
			tok.Expires.Sub(tok.Issued) == s.units(10+k) && tok.Forgotten.Sub(tok.Expires) == s.units(100+k)
	})
	each("use", func(k int, name string) bool {
		tok, err := s.Use(t.Context(), keys[k], name)
		return err == nil && string(tok.Metadata) == name && tok.UsedBy == name
	})
	each("revoke", func(k int, name string) bool { return errors.Is(s.Revoke(t.Context(), keys[k]), coord.ErrUsed) })

	each("acquire", func(k int, name string) bool {
		r := s.newRequest(name)
		r.Lifetime, r.MaxLifetime = s.units(10+k), s.units(1000)
		requests[k] = r
		number, err := s.Acquire(t.Context(), name, r)
		return err == nil && number > 0
	})
	each("holder", func(k int, name string) bool {
		h, held, err := s.Holder(t.Context(), name)
		return err == nil && held && h.Name == name && h.Until.Sub(h.Since) == s.units(10+k)
	})
	s.advance(t, 5)
	each("renew", func(k int, name string) bool {
		left, err := s.Renew(t.Context(), name, requests[k])
		return err == nil && left == s.units(10+k)
	})
	each("release", func(k int, name string) bool {
		other := s.Release(t.Context(), name, requests[(k+1)%n])
		return errors.Is(other, coord.ErrLost) && s.Release(t.Context(), name, requests[k]) == nil
	})
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
	_, err = s.Renew(ctx, "u", r)
	requireErrorIs(t, err, left)
	requireErrorIs(t, s.Release(ctx, "u", r), left)
	_, _, err = s.Holder(ctx, "u")
	requireErrorIs(t, err, left)
	s.requireHolder(t, "u", "one")
}
