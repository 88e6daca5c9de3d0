package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

// runConcurrently calls f from n goroutines that begin at the same moment.
func runConcurrently(n int, f func(k int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for k := range n {
		wg.Go(func() {
			<-start
			f(k)
		})
	}
	close(start)
	wg.Wait()
}

// race calls f n times concurrently. It fails unless exactly want calls succeed and all others return the error other.
func race(t *testing.T, n, want int, other error, f func(k int) error) {
	t.Helper()
	var succeeded, odd atomic.Int64
	runConcurrently(n, func(k int) {
		switch err := f(k); {
		case err == nil:
			succeeded.Add(1)
		case !errors.Is(err, other):
			odd.Add(1)
		}
	})
	if int(succeeded.Load()) != want || odd.Load() != 0 {
		t.Fatalf("%d of %d calls succeeded, not %d; %d failed with another error than %v", succeeded.Load(), n, want, odd.Load(), other)
	}
}

func testConcurrentFields(t *testing.T, s *subject) {
	const n = 1000
	i := s.create(t, map[string]string{"user": "ada"})
	race(t, n, n, nil, func(k int) error { return s.commit(t, i, setChange(fmt.Sprint("field", k), fmt.Sprint(k))) })
	want := map[string]string{"user": "ada"}
	for k := range n {
		want[fmt.Sprint("field", k)] = fmt.Sprint(k)
	}
	s.requireFields(t, i, want)
}

func testConcurrentCreates(t *testing.T, s *subject) {
	i := newID()
	race(t, 50, 1, storage.ErrExists, func(k int) error {
		d := s.newDelta(i, setChange("winner", fmt.Sprint(k)))
		d.Create = true
		return s.store.Commit(t.Context(), d)
	})
}

func testConcurrentRotations(t *testing.T, s *subject) {
	i := s.create(t, nil)
	winner := make(chan storage.Digest, 50)
	race(t, cap(winner), 1, storage.ErrGone, func(int) error {
		d := s.newDelta(i, nil)
		d.Rotate = newDigest()
		err := s.store.Commit(t.Context(), d)
		if err == nil {
			winner <- d.Rotate
		}
		return err
	})
	s.requireFields(t, id{i.locator, <-winner}, nil)
}

// testDestroyDuringCommits destroys a session during concurrent commits. Afterwards the session must be gone. A commit
// that began after Destroy had returned must not succeed.
func testDestroyDuringCommits(t *testing.T, s *subject) {
	for range 20 {
		i := s.create(t, map[string]string{"user": "ada"})
		var destroyed atomic.Bool
		var late, odd atomic.Int64
		runConcurrently(40, func(k int) {
			if k == 20 {
				if s.store.Destroy(t.Context(), i.locator, i.digest) != nil {
					odd.Add(1)
				}
				destroyed.Store(true)
				return
			}
			after := destroyed.Load()
			err := s.commit(t, i, setChange(fmt.Sprint("f", k), "1"))
			if err == nil && after {
				late.Add(1)
			}
			if err != nil && !errors.Is(err, storage.ErrGone) {
				odd.Add(1)
			}
		})
		if late.Load() != 0 || odd.Load() != 0 {
			t.Fatalf("%d commits came through after the destroy, %d calls failed oddly", late.Load(), odd.Load())
		}
		s.requireGone(t, i)
	}
}
