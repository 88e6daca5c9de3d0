package redispipe

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

// listed answers each key with the last letter of its name, that of its list's head, and
// what its numbers come to.
var listed = NewListScript(`
	local out = {}
	while at <= #ARGV do
		local head = ARGV[at + 1]
		at = at + tonumber(ARGV[at]) + 1
		local keys, mode = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
		at = at + 2
		for i = 1, keys do
			local sum = 0
			for j = 0, mode - 1 do sum = sum * 10 + tonumber(ARGV[at + j]) end
			out[#out + 1] = string.sub(KEYS[key + i], -1) .. head .. string.format('%02d', sum)
			at = at + mode
		end
		key = key + keys
	end
	return table.concat(out)`, 4)

func texts(t *testing.T, p *Pipe, calls ...Call) []string {
	t.Helper()
	replies, err := p.RunAll(t.Context(), calls)
	require.NoError(t, err)
	var out []string
	for _, r := range replies {
		require.NoError(t, r.Err)
		out = append(out, r.Text)
	}
	return out
}

func TestListsOfOneHeadAreOne(t *testing.T) {
	server := redistest.Start(t)
	p := newPipe(t, server.Client(nil), Options{Timeout: 5 * time.Second})
	x, y := NewHead("x", "more"), NewHead("y")
	list := func(h *Head, keys string, mode int, numbers ...int64) Call {
		return Call{Script: listed, Head: h, Keys: strings.Split(keys, ""), Mode: mode, Numbers: numbers}
	}
	require.Equal(t, []string{"ax00"}, texts(t, p, list(x, "a", 0))) // the script is loaded
	before, _ := server.Calls("evalsha")
	require.Equal(t, []string{"ax11bx11", "cy00", "ax31", "ax42bx52", "dy00"}, texts(t, p,
		list(x, "ab", 0), list(y, "c", 0), list(x, "a", 1, 3), list(x, "ab", 2, 4, 2, 5, 2), list(y, "d", 0)))
	after, _ := server.Calls("evalsha")
	require.Equal(t, before+1, after)
}

func TestNoMoreThanSoManyKeysAreOneCommand(t *testing.T) {
	server := redistest.Start(t)
	head := NewHead("x")
	var calls []Call
	for range 10 {
		calls = append(calls, Call{Script: listed, Head: head, Keys: []string{"a", "b", "c"}})
	}
	for most, commands := range map[int]int{1: 10, 6: 5, 8: 5, 9: 4, 100: 1} {
		p := newPipe(t, server.Client(nil), Options{Timeout: 5 * time.Second, Joined: most})
		texts(t, p, calls[0])
		before, _ := server.Calls("evalsha")
		texts(t, p, calls...)
		after, _ := server.Calls("evalsha")
		require.Equal(t, before+commands, after, "%d", most)
	}
}

// TestABatchCountsKeys has more keys than one round trip takes.
func TestABatchCountsKeys(t *testing.T) {
	p := newPipe(t, redistest.Start(t).Client(nil), Options{Timeout: 5 * time.Second, Batch: 4})
	var calls []*call
	for range 3 {
		calls = append(calls, &call{Call: Call{Script: listed, Head: NewHead(), Keys: make([]string, 3)}, ctx: t.Context()})
	}
	p.queue = calls
	for range calls {
		require.Len(t, p.wanted(), 1)
	}
	require.Empty(t, p.wanted())
}

func TestAListsReplyOfAnotherLengthIsAnError(t *testing.T) {
	p := newPipe(t, redistest.Start(t).Client(nil), Options{Timeout: 5 * time.Second})
	for src, want := range map[string]string{
		`return 'abc'`: "returned 3 elements to 1 calls, want 8",
		`return ''`:    "returned 0 elements",
		`return {1}`:   "",
		`return nil`:   "",
		`error('own')`: "own",
	} {
		_, err := p.Run(t.Context(), Call{Script: NewListScript(src, 4), Head: NewHead(), Keys: []string{"a", "b"}})
		require.ErrorContains(t, err, want, src)
	}
}

func TestRunAllGivesEachItsError(t *testing.T) {
	p := newPipe(t, redistest.Start(t).Client(nil), Options{Timeout: 5 * time.Second})
	good, bad := Call{Script: incr, Keys: []string{"n"}, Args: []any{2}, Replies: 1}, Call{Script: fail, Keys: []string{"n"}, Replies: 1}
	replies, err := p.RunAll(t.Context(), []Call{good, bad, good})
	require.NoError(t, err)
	require.NoError(t, replies[0].Err)
	require.ErrorContains(t, replies[1].Err, "NO not this")
	require.Equal(t, []any{int64(4)}, replies[2].Values)

	replies, err = p.RunAll(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, replies)
}

// TestACallerOfManyCanLeave while Redis is silent, and what waits for its turn is not sent.
func TestACallerOfManyCanLeave(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(nil)
	p := newPipe(t, client, Options{Timeout: 5 * time.Second, InFlight: 1})
	call := Call{Script: incr, Keys: []string{"n"}, Args: []any{1}, Replies: 1}
	require.NoError(t, client.ClientPause(t.Context(), 300*time.Millisecond).Err())
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := fmt.Errorf("gone")
	left := make(chan error, 2)
	for queued := range 2 {
		go func() {
			_, err := p.RunAll(ctx, []Call{call, call})
			left <- err
		}()
		require.Eventually(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.flying == 1 && len(p.queue) == 2*queued
		}, 20*time.Second, time.Millisecond)
	}
	cancel(gone)
	for range 2 {
		require.ErrorIs(t, <-left, gone)
	}
	_, err := p.RunAll(ctx, []Call{call})
	require.ErrorIs(t, err, gone)
	require.EqualValues(t, "2", value(t, p))
}

// value returns the counter, and adds nothing.
func value(t *testing.T, p *Pipe) string {
	t.Helper()
	n, err := run(t.Context(), p, incr, "n", 0)
	require.NoError(t, err)
	return fmt.Sprint(n)
}
