package lazy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

// cycleOf returns the path of the cycle that err reports.
func cycleOf(t *testing.T, err error) []string {
	t.Helper()
	var cycle *lazy.CycleError
	require.ErrorAs(t, err, &cycle)
	return cycle.Path
}

// owners returns functions that make values: stand-alone values, and values of s.
func owners(s *lazy.Scope) map[string]func(func(context.Context) (int, error)) *lazy.Value[int] {
	return map[string]func(func(context.Context) (int, error)) *lazy.Value[int]{
		"stand-alone": lazy.New[int],
		"of a scope":  func(fn func(context.Context) (int, error)) *lazy.Value[int] { return lazy.In(s, fn) },
	}
}

func TestRule7ValueThatNeedsItself(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		for name, owned := range owners(s) {
			for how, ask := range map[string]func(context.Context, *lazy.Value[int]) error{
				"Get": func(ctx context.Context, v *lazy.Value[int]) error { return v.Wait(ctx) },
				"All": func(ctx context.Context, v *lazy.Value[int]) error { return lazy.All(ctx, v) },
				"Get with a derived context": func(ctx context.Context, v *lazy.Value[int]) error {
					ctx, cancel := context.WithTimeout(context.WithValue(ctx, key{}, 1), time.Hour)
					defer cancel()
					return v.Wait(ctx)
				},
				"Get through a scope inside": func(ctx context.Context, v *lazy.Value[int]) error {
					inside := lazy.NewScope(ctx)
					defer inside.Close()
					return lazy.Go(inside, v.Get).Wait(ctx)
				},
			} {
				for where, ctx := range map[string]context.Context{"never ends": context.Background(), "scope": s.Context(), "other": t.Context()} {
					var v *lazy.Value[int]
					v = owned(func(ctx context.Context) (int, error) { return 0, ask(ctx, v) })
					path := cycleOf(t, v.Wait(ctx))
					require.Contains(t, path, v.Name(), "%s, %s, %s", name, how, where)
					require.Equal(t, path[0], path[len(path)-1])
					if how != "Get through a scope inside" { // there, either value may find the cycle
						require.Len(t, path, 2)
					}
				}
			}
		}
	})
}

func TestRule7CycleNamesItsPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		for _, ctx := range []context.Context{context.Background(), t.Context(), s.Context()} {
			for _, owned := range owners(s) {
				// The cycle has values of a scope and a stand-alone value.
				var user, org, plan *lazy.Value[int]
				user = owned(func(ctx context.Context) (int, error) { return org.Get(ctx) })
				org = lazy.New(func(ctx context.Context) (int, error) { return 0, lazy.All(ctx, plan) })
				plan = lazy.In(s, func(ctx context.Context) (int, error) { return user.Get(ctx) })
				path := cycleOf(t, user.Wait(ctx))
				require.Len(t, path, 4)
				require.Equal(t, path[0], path[3])
				// The path can begin with any value, because the last goroutine to wait finds the cycle.
				for i := range 3 {
					next := map[string]string{user.Name(): org.Name(), org.Name(): plan.Name(), plan.Name(): user.Name()}
					require.Equal(t, next[path[i]], path[i+1])
				}
			}
		}
	})
}

// The path begins with the value that closes the cycle, and leaves out the values that led to the cycle.
func TestRule7PathLeavesOutWhatIsBefore(t *testing.T) {
	var a, b, c *lazy.Value[int] // computed inline, so that b is always the value that is asked for twice
	a = lazy.New(func(ctx context.Context) (int, error) { return b.Get(ctx) })
	b = lazy.New(func(ctx context.Context) (int, error) { return c.Get(ctx) })
	c = lazy.New(func(ctx context.Context) (int, error) { return b.Get(ctx) })
	err := a.Wait(context.Background())
	require.Equal(t, []string{b.Name(), c.Name(), b.Name()}, cycleOf(t, err))
	require.EqualError(t, err, "lazy: cycle: "+b.Name()+" -> "+c.Name()+" -> "+b.Name())
}

// A function that gets a CycleError may go on without the value. Waiters outside of the cycle get its outcome.
func TestRule7CycleIsAnOrdinaryError(t *testing.T) {
	var a, b *lazy.Value[int]
	a = lazy.New(func(ctx context.Context) (int, error) { return b.Get(ctx) })
	b = lazy.New(func(ctx context.Context) (int, error) {
		if _, err := a.Get(ctx); err != nil {
			return 7, nil
		}
		return 8, nil
	})
	for _, v := range []*lazy.Value[int]{a, b} {
		requireGet(t, context.Background(), v, 7)
	}
}

// Many goroutines read values in random graphs. A caller that can reach a cycle gets its error, and every other
// caller gets a value. If all goroutines were blocked, synctest would fail the test.
func TestRule7RandomGraphs(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		g := newGraph(rnd, 3+rnd.IntN(6), rnd.IntN(2) == 0)
		synctest.Test(t, func(t *testing.T) { g.run(t, rnd) })
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, g.needs)
		}
	}
}

// graph describes values that need each other: in which order, and whether in parallel.
type graph struct {
	needs    [][]int
	parallel []bool // whether the node reads with All
	alone    []bool
	delay    []time.Duration
}

func newGraph(rnd *rand.Rand, n int, acyclic bool) *graph {
	g := &graph{make([][]int, n), make([]bool, n), make([]bool, n), make([]time.Duration, n)}
	for i := range n {
		g.parallel[i], g.alone[i] = rnd.IntN(2) == 0, rnd.IntN(2) == 0
		g.delay[i] = time.Duration(1+rnd.IntN(3)) * time.Millisecond
		for j := range n {
			if rnd.IntN(n) < 2 && (!acyclic || i < j) {
				g.needs[i] = append(g.needs[i], j)
			}
		}
		rnd.Shuffle(len(g.needs[i]), func(a, b int) {
			g.needs[i][a], g.needs[i][b] = g.needs[i][b], g.needs[i][a]
		})
	}
	return g
}

// reachesCycle reports whether node i needs, directly or not, a node that needs itself. path holds the nodes on the
// way to i.
func (g *graph) reachesCycle(i int, path map[int]bool) bool {
	if path[i] {
		return true
	}
	path[i] = true
	defer delete(path, i)
	for _, j := range g.needs[i] {
		if g.reachesCycle(j, path) {
			return true
		}
	}
	return false
}

func (g *graph) run(t *testing.T, rnd *rand.Rand) {
	s := lazy.NewScope(apart(t))
	vs := make([]*lazy.Value[int], len(g.needs))
	for i := range vs {
		fn := func(ctx context.Context) (int, error) {
			<-time.After(g.delay[i])
			return i, g.ask(ctx, vs, i)
		}
		if vs[i] = lazy.In(s, fn); g.alone[i] {
			vs[i] = lazy.New(fn)
		}
	}
	var wg sync.WaitGroup
	for range 2 {
		for _, i := range rnd.Perm(len(vs)) {
			ctx := []context.Context{context.Background(), t.Context(), s.Context()}[rnd.IntN(3)]
			wg.Go(func() {
				got, err := vs[i].Get(ctx)
				var cycle *lazy.CycleError
				switch wrong := g.reachesCycle(i, map[int]bool{}); {
				case wrong && !errors.As(err, &cycle):
					t.Errorf("%d: %v, although it reaches a cycle", i, err)
				case !wrong && (err != nil || got != i):
					t.Errorf("%d: %d, %v, although it reaches no cycle", i, got, err)
				}
			})
		}
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-time.After(time.Second) // an abandoned computation goes on
}

func (g *graph) ask(ctx context.Context, vs []*lazy.Value[int], i int) error {
	ws := make([]lazy.Waiter, 0, len(g.needs[i]))
	for _, j := range g.needs[i] {
		ws = append(ws, vs[j])
	}
	if g.parallel[i] {
		return lazy.All(ctx, ws...)
	}
	for _, w := range ws {
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
