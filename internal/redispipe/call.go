package redispipe

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Call is one call of a script: of one that [NewListScript] made, a list.
type Call struct {
	Script *Script
	Keys   []string // in one slot
	// Args are strings, numbers and *Head; of a Head the script gets the name. They
	// must not change, even after the call has returned with its context's end.
	Args []any
	// Replies is how many elements of the script's reply are the call's.
	Replies int

	// Head is what all keys of a list have in common. Numbers are Mode of them for each
	// key; that script gets more of 1, if others give more. They must not change either.
	Head    *Head
	Mode    int
	Numbers []int64
}

// Reply is what a call got: Replies elements of what its script returned, or of a list
// as many bytes for each key as NewListScript was told. It is shared with nobody.
type Reply struct {
	Ints   []int64 // of a script that NewIntScript made
	Values []any   // of one of NewScript: string, int64, []any or nil
	Text   string  // of one of NewListScript
	Err    error   // of RunAll
}

// call is a Call and whoever waits for it.
type call struct {
	Call
	ctx   context.Context // the caller's
	group *group
	until time.Time // when trying again ends; zero before the first time
	alone bool      // it is a command by itself

	reply Reply // final once the group is done
	err   error
}

// size is what the call counts for Batch and Joined.
func (c *call) size() int {
	if c.Head == nil {
		return 1
	}
	return len(c.Keys)
}

// group is the calls of one moment, which wait together.
type group struct {
	left atomic.Int64
	done chan struct{} // gets an element when all are answered
}

func newGroup(calls int) *group {
	g := &group{done: make(chan struct{}, 1)}
	g.left.Store(int64(calls))
	return g
}

// answered says that one of the calls is. Nobody touches it after that but its caller.
func (g *group) answered() {
	if g.left.Add(-1) == 0 {
		g.done <- struct{}{}
	}
}

// tag returns the part of the call's first key that decides its slot: keys with the
// same tag are in the same one.
func (c *call) tag() string {
	if len(c.Keys) == 0 {
		return ""
	}
	key := c.Keys[0]
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

// answer gives each call its part of the reply.
func answer(calls []*call, cmd command) {
	all, err := cmd.reply()
	want := 0
	for _, c := range calls {
		want += c.wants()
	}
	if got := len(all.Ints) + len(all.Values) + len(all.Text); err == nil && got != want {
		err = fmt.Errorf("redispipe: the script returned %d elements to %d calls, want %d", got, len(calls), want)
	}
	for _, c := range calls {
		n := c.wants()
		switch {
		case err != nil:
			c.err = err
		case c.Script.each > 0:
			c.reply.Text, all.Text = all.Text[:n], all.Text[n:]
		case c.Script.ints:
			c.reply.Ints, all.Ints = all.Ints[:n:n], all.Ints[n:]
		default:
			c.reply.Values, all.Values = all.Values[:n:n], all.Values[n:]
			c.err = refused(c.reply.Values)
		}
	}
}

// wants returns how many elements of the reply are the call's: bytes, of a list.
func (c *call) wants() int {
	if c.Script.each > 0 {
		return len(c.Keys) * c.Script.each
	}
	return c.Replies
}

// refused returns the error that a call got instead of its reply.
func refused(values []any) error {
	if len(values) > 0 {
		if err, ok := values[0].(redis.Error); ok {
			return err
		}
	}
	return nil
}
