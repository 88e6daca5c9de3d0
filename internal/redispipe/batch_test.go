package redispipe

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// counters adds N to each key, once for each of the equal calls. Its reply is the number of keys, and then for each key its
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

// of returns a call of a Batch.
func of(b *Batch, key string, n int64) Call { return Call{Batch: b, Key: key, N: n} }

// together runs calls in one round trip and requires that all succeed.
func together(t *testing.T, p *Pipe, calls ...Call) (replies []Reply) {
	t.Helper()
	for _, r := range p.RunAll(t.Context(), long, calls) {
		require.NoError(t, r.Err)
		replies = append(replies, r.Reply)
	}
	return replies
}

// evals returns the number of EVALSHAs that the server runs during f.
func evals(s *testhost.Redis, f func()) int {
	before, _ := s.Calls("evalsha")
	f()
	after, _ := s.Calls("evalsha")
	return after - before
}

// loadBatch makes Redis load the script of a Batch.
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
			require.Equal(t, 1, cap(got[0].Ints[1:]), "a caller that appends to its integers must not write to those of other calls")
		})
	}
}

// TestAskingCallsAreSeparate checks that a call that must follow an ASKING is not joined with equal calls that must not.
func TestAskingCallsAreSeparate(t *testing.T) {
	asking := &call{Call: of(&counters, "a", 1), asking: true}
	cmds := commands([]*call{{Call: of(&counters, "a", 1)}, asking, {Call: of(&counters, "a", 1)}}, true)
	require.Len(t, cmds, 2)
	require.Equal(t, []*call{asking}, cmds[1].calls)
	require.Equal(t, 1, asking.countEqual())
}

// TestSlotsAreSeparate calls a node of a Cluster with a Cluster client and with a plain client, which does not know that the
// node belongs to a Cluster.
func TestSlotsAreSeparate(t *testing.T) {
	t.Parallel()
	s, plain, cluster := testhost.StartNode(t)
	for name, c := range map[string]redis.UniversalClient{"plain": plain, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, c)
			require.Equal(t, name == "cluster", p.oneSlot.Load())
			loadBatch(t, p, &counters)
			together(t, newPipe(t, c), of(&counters, "{first}", 1), of(&counters, "{second}", 1))
			var calls []Call
			for i := range 12 {
				calls = append(calls, of(&counters, fmt.Sprintf("{%s%d}", name, i%4), 1))
			}
			for _, r := range together(t, p, calls...) { // now the pipe of the plain client knows
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
