package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

// runConcurrently calls f from n goroutines that begin at one moment.
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

func testConcurrentFields(t *testing.T, s *subject) {
	const n = 1000
	i := s.create(t, map[string]string{"user": "ada"})
	var failed atomic.Int64
	runConcurrently(n, func(k int) {
		if s.commit(t, i, setChange(fmt.Sprint("field", k), fmt.Sprint(k))) != nil {
			failed.Add(1)
		}
	})
	want := map[string]string{"user": "ada"}
	for k := range n {
		want[fmt.Sprint("field", k)] = fmt.Sprint(k)
	}
	if failed.Load() != 0 {
		t.Fatalf("%d of %d commits failed", failed.Load(), n)
	}
	s.requireFields(t, i, want)
}

func testConcurrentCreates(t *testing.T, s *subject) {
	const n = 50
	i := newID()
	var won, odd atomic.Int64
	runConcurrently(n, func(k int) {
		d := s.newDelta(i, setChange("winner", fmt.Sprint(k)))
		d.Create = true
		switch err := s.store.Commit(t.Context(), d); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, storage.ErrExists):
			odd.Add(1)
		}
	})
	if won.Load() != 1 || odd.Load() != 0 {
		t.Fatalf("%d creates succeeded and %d failed with something else than ErrExists", won.Load(), odd.Load())
	}
}

func testConcurrentRotations(t *testing.T, s *subject) {
	const n = 50
	i := s.create(t, nil)
	var winners sync.Map
	runConcurrently(n, func(int) {
		d := s.newDelta(i, nil)
		d.Rotate = newDigest()
		if s.store.Commit(t.Context(), d) == nil {
			winners.Store(d.Rotate, true)
		}
	})
	won := 0
	winners.Range(func(digest, _ any) bool {
		won++
		s.requireFields(t, id{i.locator, digest.(storage.Digest)}, nil)
		return true
	})
	if won != 1 {
		t.Fatalf("%d of %d rotations from one secret succeeded", won, n)
	}
}

// testDestroyDuringCommits commits, loads and destroys at once: whatever the order, nothing
// is left, and no commit that began after the destroy had returned succeeds.
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
