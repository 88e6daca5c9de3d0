package session

import (
	"context"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// maxTurnWait bounds how long a try of an update waits for its turn.
const maxTurnWait = 50 * time.Millisecond

// turns lets the updates of one field follow one another, because only one of several that
// compare and swap at the same time succeeds. It knows this process only, and an update may
// go on without its turn: the store's compare-and-swap keeps the updates correct. The zero
// value is ready to use.
type turns struct {
	mu   sync.Mutex
	last map[turn]chan struct{} // closed once the last update that has joined leaves
}

// A turn is the right to update a field of a session.
type turn struct {
	locator storage.Locator
	field   string
}

// join returns what the update has to wait for, nil if nothing, and what it leaves with.
func (t *turns) join(k turn) (before <-chan struct{}, own chan struct{}) {
	own = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = make(map[turn]chan struct{})
	}
	before, t.last[k] = t.last[k], own
	return before, own
}

// leave gives the turn to the next update.
func (t *turns) leave(k turn, own chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[k] == own {
		delete(t.last, k)
	}
	close(own)
}

// waitForTurn waits until before is closed, at most for maxTurnWait. It returns an error if
// ctx ends first. It does not wait if before is nil.
func waitForTurn(ctx context.Context, before <-chan struct{}) error {
	if before == nil {
		return nil
	}
	timer := time.NewTimer(maxTurnWait)
	defer timer.Stop()
	select {
	case <-before:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
