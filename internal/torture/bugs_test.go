package torture_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// buggy is a store with a bug.
type buggy struct {
	ratelimit.Store
	do func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error)
}

func (b *buggy) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	return b.do(ctx, b.Store, ops)
}

func (b *buggy) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	results, err := b.Do(ctx, []ratelimit.Op{op})
	if err != nil {
		return ratelimit.Result{}, err
	}
	return results[0], nil
}

// errPlanted is the error of a call that a bug fails.
var errPlanted = fmt.Errorf("%w: planted", ratelimit.ErrStore)

// TestBugsAreFound checks that each check of a schedule finds a bug of a store.
func TestBugsAreFound(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	var failed atomic.Bool
	for name, bug := range map[string]struct {
		fault, want string
		do          func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error)
	}{
		"forgets charges": {"connections reset", "torture: ", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			results, err := inner.Do(ctx, ops)
			if err == nil && ops[0].Kind == ratelimit.Take && results[0].Allowed && n.Add(1)%2 == 0 {
				_, _ = inner.Do(ctx, []ratelimit.Op{{Rule: ops[0].Rule, Key: ops[0].Key, Kind: ratelimit.Reset}})
			}
			return results, err
		}},
		"admits too many": {"connections reset", "torture: ", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			results, err := inner.Do(ctx, ops)
			if err == nil && !results[0].Allowed && n.Add(1)%4 == 0 {
				results[0].Allowed = true
			}
			return results, err
		}},
		"charges twice": {"`SCRIPT FLUSH`", "without reason", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			if ops[0].Kind == ratelimit.Take {
				_, _ = inner.Do(ctx, ops)
			}
			return inner.Do(ctx, ops)
		}},
		"loses adds": {"connections reset", "counted", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			if ops[0].Kind == ratelimit.Add && ops[0].Interval == 0 && n.Add(1)%4 == 0 {
				return []ratelimit.Result{{Allowed: true}}, nil
			}
			return inner.Do(ctx, ops)
		}},
		"adds twice": {"`SCRIPT FLUSH`", "counted", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			if ops[0].Kind == ratelimit.Add && n.Add(1)%4 == 0 {
				_, _ = inner.Do(ctx, ops)
			}
			return inner.Do(ctx, ops)
		}},
		"has no deadline": {"half-open connections", "waited for 2", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			results, err := inner.Do(ctx, ops)
			if err != nil {
				<-time.After(2 * time.Second)
			}
			return results, err
		}},
		"does not recover": {"connections cut", "not back.*planted", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			if failed.Load() {
				return nil, errPlanted
			}
			results, err := inner.Do(ctx, ops)
			failed.Store(err != nil)
			return results, err
		}},
		"fails at times": {"`SCRIPT FLUSH`", "without a fault.*planted", func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			if n.Add(1)%50 == 0 {
				return nil, errPlanted
			}
			return inner.Do(ctx, ops)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := single(t, nil, func(s ratelimit.Store) ratelimit.Store { return &buggy{s, bug.do} })
			h.strict = name == "has no deadline" || name == "does not recover"
			requireViolation(t, h, bug.fault, bug.want)
		})
	}
}

// In TestDeadNodeThatBlocksOthersIsFound, calls to all nodes of a Cluster wait for each other.
func TestDeadNodeThatBlocksOthersIsFound(t *testing.T) {
	t.Parallel()
	turn := make(chan struct{}, 1)
	h := cluster(t, func(s ratelimit.Store) ratelimit.Store {
		return &buggy{s, func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
				return inner.Do(ctx, ops)
			case <-time.After(timeout / 4):
				return nil, errPlanted
			}
		}}
	})
	requireViolation(t, h, "Cluster: `SIGSTOP` of a master", "without a fault.*planted")
}

// In TestLossOfAShardExcusesNoOther, the second shard loses writes after a fault of the first shard. The check must fail.
func TestLossOfAShardExcusesNoOther(t *testing.T) {
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	rule := ratelimit.SlidingLog(1, time.Hour)
	limiter, err := ratelimit.NewLimiter(store, rule)
	require.NoError(t, err)
	failover := outage{fault: &fault{name: "Cluster: failover"}, began: 100, ended: 200, lossy: []int{0}, lostFrom: 5}
	allowedAt := func(micros int64) event {
		return event{Take: torture.Take{Sent: micros, Received: micros + 1, N: 1, Allowed: true}, ends: []int64{0}}
	}
	for shard, want := range []string{"", "2 units"} {
		s := &subject{Limiter: limiter, key: "k", shard: shard}
		l := &log{outages: []outage{failover}}
		err := l.admitted(s, 0, rule, []event{allowedAt(10), allowedAt(300)})
		requireError(t, want, err)

		v := &visit{user: "ada", login: [2]int64{1, 2}, shard: shard}
		err = checkVisits([]request{
			{visit: v, path: "POST /add", sent: 10, received: 11, status: 200, content: content{Exists: true, User: "ada", Owner: "ada"}},
			{visit: v, path: "GET /read", sent: 300, received: 301, status: 200, content: content{Exists: true, User: "ada", Owner: "ada"}},
		}, l.outages)
		requireError(t, []string{"", "a lost write"}[shard], err)
	}
}

// requireError requires an error that contains want, or no error if want is empty.
func requireError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
	} else {
		require.ErrorContains(t, err, want)
	}
}

// requireViolation runs the host with only one of its faults until it finds the wanted violation. It tries up to ten
// times, because a busy machine may cause a different violation first. want is a regular expression.
func requireViolation(t *testing.T, h *host, only, want string) {
	t.Helper()
	h.faults = slices.DeleteFunc(h.faults, func(f fault) bool { return f.name != only })
	h.perEpisode, h.breaks, h.buggy = 1, false, true
	var err error
	for range 10 {
		if err = h.run(t, 0); err != nil && regexp.MustCompile(want).MatchString(err.Error()) {
			return
		}
	}
	require.Regexp(t, want, fmt.Sprint(err))
}
