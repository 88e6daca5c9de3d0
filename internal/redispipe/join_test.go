package redispipe

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

// together runs calls that are made at one moment, and returns their replies and errors.
func together(t *testing.T, p *Pipe, calls ...Call) ([]Reply, []error) {
	t.Helper()
	replies, err := p.RunAll(t.Context(), calls)
	require.NoError(t, err)
	errs := make([]error, len(calls))
	for i, r := range replies {
		errs[i] = r.Err
	}
	return replies, errs
}

// scaled adds to a key its argument times the factor that its head says.
var scaled = NewIntScript(`
	local out = {}
	while key < #KEYS do
		key = key + 1
		out[2 * key - 1] = redis.call('INCRBY', KEYS[key], ARGV[at + 1] * ARGV[heads[ARGV[at]] + 2])
		out[2 * key] = #ARGV
		at = at + 2
	end
	return out`)

func TestCallsOfOneScriptAreOneCommand(t *testing.T) {
	server := redistest.Start(t)
	p := newPipe(t, server.Client(nil), Options{Timeout: 5 * time.Second})
	two, three := NewHead("unused", 2), NewHead("unused", 3)
	call := func(key string, h *Head, n int) Call {
		return Call{Script: scaled, Keys: []string{key}, Args: []any{h, n}, Replies: 2}
	}
	_, errs := together(t, p, call("loaded", two, 1))
	require.Equal(t, []error{nil}, errs)
	before, _ := server.Calls("evalsha")

	replies, errs := together(t, p, call("a", two, 10), call("b", three, 10), call("c", two, 100), call("a", two, 1))
	require.Equal(t, make([]error, 4), errs)
	after, _ := server.Calls("evalsha")
	require.Equal(t, before+1, after)
	sum := map[string]int64{}
	for i, key := range []string{"a", "b", "c", "a"} {
		require.Len(t, replies[i].Ints, 2)
		sum[key] = max(sum[key], replies[i].Ints[0])
		require.EqualValues(t, 2+2*4+4*2, replies[i].Ints[1], "each head is sent once")
	}
	require.Equal(t, map[string]int64{"a": 22, "b": 30, "c": 200}, sum)
}

// typed fails for a key that is no number.
var typed = NewScript(`
	local out = {}
	for i = 1, #KEYS do out[i] = redis.pcall('INCR', KEYS[i]) end
	return out`)

func TestACallsOwnErrorIsNotTheOthers(t *testing.T) {
	c := redistest.Start(t).Client(nil)
	require.NoError(t, c.Set(t.Context(), "text", "x", 0).Err())
	p := newPipe(t, c, Options{Timeout: 5 * time.Second})
	call := func(key string) Call { return Call{Script: typed, Keys: []string{key}, Replies: 1} }
	replies, errs := together(t, p, call("n"), call("text"), call("m"))
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "not an integer")
	require.NoError(t, errs[2])
	require.Equal(t, []any{int64(1)}, replies[0].Values)
	require.Equal(t, []any{int64(1)}, replies[2].Values)
}

func TestAReplyOfAnotherLengthIsAnError(t *testing.T) {
	p := newPipe(t, redistest.Start(t).Client(nil), Options{Timeout: 5 * time.Second})
	for src, want := range map[string]string{
		`return {1, 2, 3}`: "returned 3 elements to 1 calls, want 2",
		`return {}`:        "returned 0 elements",
		`return 1`:         "",
		`return 'OK'`:      "",
		`return nil`:       "",
		`return {{1}, 2}`:  "",
		`error('own')`:     "own",
	} {
		_, err := p.Run(t.Context(), Call{Script: NewIntScript(src), Replies: 2})
		require.ErrorContains(t, err, want, src)
		if src != `return {{1}, 2}` {
			_, err = p.Run(t.Context(), Call{Script: NewScript(src), Replies: 2})
			require.ErrorContains(t, err, want, src)
		}
	}
}

func TestNoMoreThanSoManyCallsAreOneCommand(t *testing.T) {
	var calls []*call
	for range 2*maxJoined + 1 {
		calls = append(calls, &call{Call: Call{Script: typed}})
	}
	lists := join(calls, false, 128)
	require.Len(t, lists, 3)
	require.Len(t, lists[0], maxJoined)
	require.Len(t, lists[2], 1)
}

func TestTags(t *testing.T) {
	for key, want := range map[string]string{
		"a": "a", "a{b}c": "b", "{}b": "{}b", "a{b": "a{b", "{a}{b}": "a", "}{a}": "a", "{{a}}": "{a",
	} {
		c := &call{Call: Call{Keys: []string{key, "other"}}}
		require.Equal(t, want, c.tag())
	}
	require.Empty(t, (&call{}).tag())
}

// TestSlotsAreKeptApart has a client for one server, which is a node of a Cluster.
func TestSlotsAreKeptApart(t *testing.T) {
	server, plain, cluster := redistest.StartNode(t)

	for name, client := range map[string]redis.UniversalClient{"plain": plain, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, client, Options{Timeout: 5 * time.Second})
			var calls []Call
			for i := range 12 {
				calls = append(calls, Call{Script: typed, Keys: []string{fmt.Sprintf("{%s%d}n", name, i%4)}, Replies: 1})
			}
			for range 2 { // the first time, the scripts are loaded
				_, errs := together(t, p, calls...)
				require.Equal(t, make([]error, len(calls)), errs)
			}
			before, _ := server.Calls("evalsha")
			_, errs := together(t, p, calls...)
			require.Equal(t, make([]error, len(calls)), errs)
			after, _ := server.Calls("evalsha")
			require.Equal(t, before+4, after, "one command for each slot")
			for i := range 4 {
				require.Equal(t, "9", plain.Get(t.Context(), fmt.Sprintf("{%s%d}n", name, i)).Val(), "each call ran once")
			}
		})
	}
}
