package redispipe

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// counters adds n to its keys, for each of the equal calls. Its reply has the number of keys, and, for each key, its
// earlier value and the number of equal calls.
var counters = Batch{
	Script: NewIntScript(`
		local out = {#KEYS}
		for i, key in ipairs(KEYS) do
			local n, times = ARGV[2 * i] or 1, ARGV[2 * i + 1] or 1
			out[2 * i] = redis.call('INCRBY', key, n * times) - n * times
			out[2 * i + 1] = times + 0
		end
		return out`),
	Args: []any{"unused"}, Width: 2, Max: 100, Join: true,
}

func of(b *Batch, key string, n int64) Call { return Call{Batch: b, Key: key, N: n} }

// together runs calls that make one round trip. Redis knows their scripts.
func together(t *testing.T, p *Pipe, calls ...Call) (replies []Reply) {
	t.Helper()
	for _, r := range p.RunAll(t.Context(), long, calls) {
		require.NoError(t, r.Err)
		replies = append(replies, r.Reply)
	}
	return replies
}

// evals returns how many EVALSHAs there are while f runs.
func evals(s *testhost.Redis, f func()) int {
	before, _ := s.Calls("evalsha")
	f()
	after, _ := s.Calls("evalsha")
	return after - before
}

func loadBatch(t *testing.T, p *Pipe, b *Batch) { together(t, p, of(b, "{unused}", 0)) }

func TestBatchEntries(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	other, small, separate := counters, counters, counters
	small.Max, separate.Join = 2, false
	reply := func(common, before, times int64, index int) Reply {
		return Reply{Common: common, Ints: []int64{before, times}, Index: index}
	}
	for _, tt := range []struct {
		name  string
		calls []Call
		evals int
		want  []Reply
	}{
		{"equal calls are one entry", []Call{
			of(&counters, "a", 1), of(&counters, "b", 1), of(&counters, "a", 1), of(&counters, "a", 5), of(&counters, "a", 1),
		}, 1, []Reply{reply(3, 0, 3, 0), reply(3, 0, 1, 0), reply(3, 0, 3, 1), reply(3, 3, 1, 0), reply(3, 0, 3, 2)}},
		{"without Join they are several", []Call{of(&separate, "c", 1), of(&separate, "c", 1), of(&separate, "c", 1)}, 1,
			[]Reply{reply(3, 0, 1, 0), reply(3, 1, 1, 0), reply(3, 2, 1, 0)}},
		{"Max is the number of entries", []Call{
			of(&small, "d", 2), of(&small, "d", 2), of(&small, "e", 2), of(&small, "f", 2), of(&small, "d", 2),
		}, 2, []Reply{reply(2, 0, 3, 0), reply(2, 0, 3, 1), reply(2, 0, 1, 0), reply(1, 0, 1, 0), reply(2, 0, 3, 2)}},
		{"Batches are separate", []Call{of(&counters, "g", 1), of(&other, "g", 1), of(&counters, "h", 1)}, 2,
			[]Reply{reply(2, 0, 1, 0), reply(1, 1, 1, 0), reply(2, 0, 1, 0)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			loadBatch(t, p, &counters)
			var got []Reply
			require.Equal(t, tt.evals, evals(s, func() { got = together(t, p, tt.calls...) }))
			require.Equal(t, tt.want, got)
			require.Equal(t, 1, cap(got[0].Ints[1:]), "a caller that appends to its integers does not write to others'")
		})
	}
}

// TestAskingCallsAreSeparate calls a key whose slot is moving to this node. Only calls that the other node has
// redirected here follow an ASKING.
func TestAskingCallsAreSeparate(t *testing.T) {
	asking := &call{Call: of(&counters, "a", 1), asking: true}
	cmds := commands([]*call{{Call: of(&counters, "a", 1)}, asking, {Call: of(&counters, "a", 1)}}, true)
	require.Len(t, cmds, 2)
	require.Equal(t, []*call{asking}, cmds[1].calls)
	require.Equal(t, 1, asking.countEqual())
}

// TestOneKeyOfMany has callers that come when they like.
func TestOneKeyOfMany(t *testing.T) {
	const callers, each = 64, 20
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	var mu sync.Mutex
	seen := make(map[int64]int)
	var wg sync.WaitGroup
	n := evals(s, func() {
		for range callers {
			wg.Go(func() {
				for range each {
					r, err := p.Run(t.Context(), long, of(&counters, "n", 1))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[r.Ints[0]+int64(r.Index)]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
	require.Len(t, seen, callers*each, "as if they had come one after another")
	require.Equal(t, callers*each, value(t, s.Client(nil), "n"))
	require.Less(t, n, callers*each/4)
}

// TestSlotsAreSeparate has clients of a node of a Cluster. One doesn't know that it is one.
func TestSlotsAreSeparate(t *testing.T) {
	t.Parallel()
	s, plain, cluster := testhost.StartNode(t)
	for name, c := range map[string]redis.UniversalClient{"plain": plain, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, c)
			require.Equal(t, name == "cluster", p.oneSlot.Load())
			loadBatch(t, p, &counters)
			together(t, newPipe(t, c), of(&counters, "{first}", 1), of(&counters, "{second}", 1)) // two are enough
			var calls []Call
			for i := range 12 {
				calls = append(calls, of(&counters, fmt.Sprintf("{%s%d}", name, i%4), 1))
			}
			for _, r := range together(t, p, calls...) { // the plain client learns it
				require.EqualValues(t, 1, r.Common)
			}
			require.Equal(t, 4, evals(s, func() { together(t, p, calls...) }))
			for i := range 4 {
				require.Equal(t, 6, value(t, plain, fmt.Sprintf("{%s%d}", name, i)), "each call ran once")
			}
		})
	}
}

func TestReplyOfAnotherLengthIsAnError(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	for _, src := range []string{`return {1, 2}`, `return {1, 2, 3, 4}`, `return {}`} {
		b := Batch{Script: NewIntScript(src), Width: 2, Max: 100, Join: true}
		for _, r := range p.RunAll(t.Context(), long, []Call{of(&b, "a", 1), of(&b, "a", 1)}) {
			require.ErrorIs(t, r.Err, ErrUnreadable, src)
		}
	}
	for _, src := range []string{`return 1`, `return 'x'`, `return redis.status_reply('x')`} {
		_, err := p.Run(t.Context(), long, Call{Script: NewScript(src), Keys: []string{"k"}})
		require.ErrorIs(t, err, ErrUnreadable, src)
		require.ErrorIs(t, err, ErrNoReply, "the script may have done something")
		_, err = p.Run(t.Context(), long, Call{Script: NewIntScript(src), Keys: []string{"k"}})
		require.ErrorIs(t, err, ErrUnreadable, src)
	}
	for _, src := range []string{`return {'x'}`, `return {{1}, 2}`} {
		_, err := p.Run(t.Context(), long, Call{Script: NewIntScript(src), Keys: []string{"k"}})
		require.ErrorIs(t, err, ErrUnreadable, src)
	}
	_, err := p.Run(t.Context(), long, Call{Script: NewScript(`return false`), Keys: []string{"k"}})
	require.ErrorIs(t, err, redis.Nil)
}

func TestManyArguments(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	s := NewScript(`return {KEYS[1], KEYS[2], ARGV[1], ARGV[2] + 1, ARGV[3] * 2, #ARGV}`)
	big := strings.Repeat("x", 1<<20)
	for range 2 { // by EVAL and by EVALSHA
		r, err := p.Run(t.Context(), long, Call{Script: s, Keys: []string{"a", "b"}, Args: []any{big, 1, int64(2)}})
		require.NoError(t, err)
		require.Equal(t, []any{"a", "b", big, int64(2), int64(4), int64(3)}, r.Values)
	}
}
