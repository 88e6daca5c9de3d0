package lazy_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

// loadGraph has two batches. The value for a key is the number of keys that it needs. A positive key is loaded by one
// batch, and a negative one by the other.
type loadGraph struct {
	needs   map[int][]int
	batches [2]*lazy.Batch[int, int]
	takes   time.Duration
}

// newLoadGraph returns a graph whose batches belong to s, or are stand-alone if s is nil.
func newLoadGraph(s *lazy.Scope, needs map[int][]int) *loadGraph {
	g := &loadGraph{needs: needs}
	g.batches = [2]*lazy.Batch[int, int]{lazy.BatchIn(s, "plus", g.load), lazy.BatchIn(s, "minus", g.load)}
	return g
}

func (g *loadGraph) batchOf(key int) *lazy.Batch[int, int] {
	if key > 0 {
		return g.batches[0]
	}
	return g.batches[1]
}

func (g *loadGraph) load(ctx context.Context, keys []int) (map[int]int, error) {
	if err := pause(ctx, g.takes); err != nil {
		return nil, err
	}
	found := map[int]int{}
	for _, key := range keys {
		found[key] = 1
		for _, need := range g.needs[key] {
			n, err := g.batchOf(need).Get(ctx, need)
			if err != nil {
				return nil, err
			}
			found[key] += n
		}
	}
	return found, nil
}

// Keys in the same call may need each other, directly or through another batch.
func TestBatchesWithoutACycleOfKeys(t *testing.T) {
	for name, needs := range map[string]map[int][]int{
		"one batch":                {3: {2}, 2: {1}},
		"one batch, other way":     {1: {2}, 2: {3}},
		"two batches":              {1: {-1}, -1: {2}, 2: {-2}, -2: {3}},
		"two batches, many needs":  {1: {-1, -2, -3}, -1: {2, 3}, -2: {3}, 2: {-3}, 3: {-3}},
		"another key of each call": {1: {-1}, -2: {2}},
		"a call of one key":        {-3: {-4, 4}, 4: {-2}},
	} {
		t.Run(name, func(t *testing.T) {
			bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
				var size func(key int) int
				size = func(key int) int {
					n := 1
					for _, need := range needs[key] {
						n += size(need)
					}
					return n
				}
				g := newLoadGraph(s, needs)
				g.takes = time.Second
				var wg sync.WaitGroup
				for _, keys := range [][]int{{1, 2, 3}, {-1, -2, -3}} {
					wg.Go(func() {
						got, err := g.batchOf(keys[0]).GetAll(ctx, keys)
						if err != nil || !slices.Equal(got, []int{size(keys[0]), size(keys[1]), size(keys[2])}) {
							t.Error(got, err)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// A call loads one key and waits for a call that loads several. One of these several keys waits for the first call.
func TestBatchReloadsACallOfOneKey(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		g := newLoadGraph(s, map[int][]int{1: {-2}, -4: {1}})
		g.takes = time.Second
		one := make(chan error)
		go func() { _, err := g.batches[0].Get(ctx, 1); one <- err }()
		require.NoError(t, pause(ctx, g.takes/2))
		got, err := g.batches[1].GetAll(ctx, []int{-2, -4}) // asks for key 1, whose call is waiting
		require.NoError(t, err)
		require.Equal(t, []int{1, 3}, got)
		require.NoError(t, <-one)
	})
}

// If a key needs itself, the error has the path, even if the call also loads other keys.
func TestBatchesWithACycleOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		needs map[int][]int
		path  []string
	}{
		"itself":      {map[int][]int{1: {1}}, []string{"plus", "plus"}},
		"one batch":   {map[int][]int{1: {2}, 2: {3}, 3: {1}}, []string{"plus", "plus", "plus", "plus"}},
		"two batches": {map[int][]int{1: {-1}, -1: {1}}, []string{"plus", "minus", "plus"}},
	} {
		t.Run(name, func(t *testing.T) {
			bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
				var cycle *lazy.CycleError
				_, err := newLoadGraph(s, c.needs).batches[0].Get(ctx, 1)
				require.ErrorAs(t, err, &cycle)
				require.Equal(t, c.path, cycle.Path)
				_, err = newLoadGraph(s, c.needs).batches[0].GetAll(ctx, []int{5, 4, 3, 2, 1})
				require.ErrorAs(t, err, &cycle)
				require.Equal(t, cycle.Path[0], cycle.Path[len(cycle.Path)-1])
			})
		})
	}
}

// A value and a batch that read each other are a cycle, even if the batch reads the value only for another key.
func TestBatchInACycle(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		owner := s
		if s == nil {
			owner = lazy.NewScope(apart(t))
		}
		var user *lazy.Value[int]
		b := gatheringIn(s, func(ctx context.Context, keys []int) (map[int]int, error) {
			_, err := user.Get(ctx)
			return nil, err
		})
		user = asking(owner, b, 1)
		other := asking(owner, b, 2)
		go func() { _ = other.Wait(t.Context()) }()
		_, err := user.Get(t.Context())
		var cycle *lazy.CycleError
		require.ErrorAs(t, err, &cycle)
		require.Len(t, cycle.Path, 3)
		require.ErrorAs(t, other.Wait(t.Context()), &cycle)
		require.NoError(t, owner.Close())
	})
}

// Many goroutines load keys of a graph without a cycle, from one batch and from two.
func TestBatchGraphStress(t *testing.T) {
	const keys = 40
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		needs := map[int][]int{}
		for k := 1; k <= keys; k++ { // a key needs only keys with a larger absolute value
			for _, sign := range []int{1, -1} {
				for range rng.IntN(3) {
					if k < keys {
						other := k + 1 + rng.IntN(keys-k)
						needs[sign*k] = append(needs[sign*k], other*(1-2*rng.IntN(2)))
					}
				}
			}
		}
		s := newScopeOf(t, t.Context())
		g := newLoadGraph([]*lazy.Scope{s, nil}[seed%2], needs)
		var wg sync.WaitGroup
		for range 6 {
			list := rng.Perm(keys)[:8]
			for i := range list {
				list[i]++
			}
			wg.Go(func() {
				ctx := s.Context()
				if _, err := g.batches[0].GetAll(ctx, list); err != nil {
					t.Error(seed, err)
				}
				for i := range list {
					list[i] = -list[i]
				}
				if _, err := g.batches[1].GetAll(ctx, list); err != nil {
					t.Error(seed, err)
				}
			})
		}
		wg.Wait()
	}
}
