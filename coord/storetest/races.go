package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/lazyreq/lazyreq/coord"
)

// requireOne fails unless one of 50 concurrent calls of f succeeds and the others return the error other.
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
