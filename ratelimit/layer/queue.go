package layer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Errors of [Queue.Wait]. Nothing was charged.
var (
	// ErrWaitTooLong means that a wait cannot end before its context's deadline. With it
	// comes a [*ratelimit.DeniedError], so it becomes a 429.
	ErrWaitTooLong = errors.New("layer: the wait would outlast its context")
	// ErrTooManyWaiting means that the key's line is as long as it may be. With it comes
	// a [*ratelimit.DeniedError], too.
	ErrTooManyWaiting = errors.New("layer: too many callers wait for the key")
	// ErrQueueClosed means that the queue was closed.
	ErrQueueClosed = errors.New("layer: queue is closed")
)

// QueueOptions configure a [Queue]. The zero value is usable.
type QueueOptions struct {
	// MaxWaiting is how many callers may stand in line for one key, with the one who has
	// the turn; one more is [ErrTooManyWaiting]. Default: 1024.
	MaxWaiting int
	// Bursts lets those who waited pass as soon as the rule does: when a fixed window
	// begins, a whole quota of them at once. Otherwise those for whom there was no quota
	// pass at an even pace, each of them n × Per/Limit before the next.
	Bursts bool
}

func (o QueueOptions) withDefaults() QueueOptions {
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 1024
	}
	return o
}

// Queue has callers wait for quota instead of denying them, first come, first served: by
// key, of one rule. It is for work that can wait, such as calls of somebody else's API.
//
// Only the first in a key's line asks the store, and when that says for how long it need
// not ask, it doesn't. So a key passes callers one after the other, no more of them than
// the store can be asked in a row; several processes that wait for the same quota are
// served in no particular order.
//
// A Queue is safe for concurrent use. It has no goroutine, and no memory of a key in
// whose line nobody stands: who then comes alone passes at once if the rule allows it,
// whatever the pace was. For a pace that nobody can break, take a GCRA with a small burst.
type Queue struct {
	one    func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	rule   ratelimit.Rule
	o      QueueOptions
	closed chan struct{}

	mu    sync.Mutex
	over  bool             // closed is closed
	lines map[string]*line // of the keys that somebody waits for
}

// NewQueue returns a queue for the quota of rule in store, which may have layers. An
// error names what is wrong.
func NewQueue(store ratelimit.Store, rule ratelimit.Rule, o QueueOptions) (*Queue, error) {
	switch {
	case store == nil:
		return nil, errors.New("layer: NewQueue: store is nil")
	case rule.Limit() == 0:
		return nil, fmt.Errorf("layer: NewQueue: %v has no limit", rule)
	}
	if err := option.Count("layer", "QueueOptions.MaxWaiting", o.MaxWaiting, 0); err != nil {
		return nil, err
	}
	return &Queue{
		one: storage.DoOne(store), rule: rule, o: o.withDefaults(),
		closed: make(chan struct{}), lines: map[string]*line{},
	}, nil
}

// Wait takes n units of key, as soon as they are there and all who came before have theirs.
// It returns an allowed result, or an error:
//
//   - the cause of ctx's end. Who leaves while waiting isn't charged; who leaves while the
//     store is being asked may be, as with any take.
//   - [ErrWaitTooLong] at once, if by what is known the units come after ctx's deadline:
//     supposing that those who stand in line stay, and that nobody gives units back.
//   - [ErrTooManyWaiting], [ErrQueueClosed].
//   - [ratelimit.ErrTooLarge] if n is above the limit, and other errors of the op.
//   - one that wraps [ratelimit.ErrStore]. If the store fails for one, it does for all who
//     stand behind.
//   - a [*ratelimit.DeniedError] of a key that is on a deny list: waiting would not help.
func (q *Queue) Wait(ctx context.Context, key string, n int64) (ratelimit.Result, error) {
	ops := [1]ratelimit.Op{{Rule: q.rule, Key: key, N: n, Kind: ratelimit.Take}}
	if ctx.Err() != nil {
		return ratelimit.Result{}, context.Cause(ctx)
	}
	if err := storage.Validate(ops[:]); err != nil {
		return ratelimit.Result{}, err
	}
	l, c, err := q.enter(ctx, key, n)
	if err != nil {
		return ratelimit.Result{}, err
	}
	defer q.leave(l, c)
	select {
	case err = <-c.turn:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-q.closed:
		err = ErrQueueClosed
	}
	for err == nil {
		if err = q.pause(ctx, l, n); err != nil {
			break
		}
		var res ratelimit.Result
		res, err = q.one(ctx, ops[0])
		q.learn(ctx, l, n, res, err)
		switch {
		case err != nil:
		case res.Allowed:
			return res, nil
		case res.Source == ratelimit.FromDenyList:
			err = res.Err()
		}
	}
	return ratelimit.Result{}, err
}

// pause waits for the moment that the first in line is to ask the store.
func (q *Queue) pause(ctx context.Context, l *line, n int64) error {
	q.mu.Lock()
	at := l.opens(n)
	q.mu.Unlock()
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	if err := q.inTime(ctx, wait); err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-q.closed:
		return ErrQueueClosed
	}
}

// inTime returns what is wrong with a wait of so long.
func (q *Queue) inTime(ctx context.Context, wait time.Duration) error {
	deadline, ok := ctx.Deadline()
	if !ok || wait <= time.Until(deadline) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrWaitTooLong, &ratelimit.DeniedError{Limit: q.rule.Limit(), RetryAfter: wait})
}

// Waiting returns how many callers stand in line for key, with the one who has the turn.
func (q *Queue) Waiting(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		return l.callers.Len()
	}
	return 0
}

// Close sends away all who wait, and those who come later: ErrQueueClosed. Who is asking
// the store has its answer first. It returns nil, however often it is called.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over = true
		close(q.closed)
	}
	return nil
}
