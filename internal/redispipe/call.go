package redispipe

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Call is one call of a script.
type Call struct {
	Script *Script
	Keys   []string // in one slot
	// Args are strings, numbers and *Head; of a Head the script gets the name. They
	// must not change, even after the call has returned with its context's end.
	Args []any
	// Replies is how many elements of the script's reply are the call's.
	Replies int
}

// Reply is what a call got: Replies elements of what its script returned. They are
// shared with nobody.
type Reply struct {
	Ints   []int64 // of a script that NewIntScript made
	Values []any   // of another: string, int64, []any or nil
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

// group is the calls of one moment, which wait together.
type group struct {
	mu   sync.Mutex
	left int
	done chan struct{} // closed when all are answered
}

// answered says that n of the calls are.
func (g *group) answered(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left -= n; g.left == 0 {
		close(g.done)
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
	ints, values, err := cmd.reply()
	want := 0
	for _, c := range calls {
		want += c.Replies
	}
	if got := len(ints) + len(values); err == nil && got != want {
		err = fmt.Errorf("redispipe: the script returned %d elements to %d calls, want %d", got, len(calls), want)
	}
	for _, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case c.Script.ints:
			c.reply.Ints, ints = ints[:c.Replies:c.Replies], ints[c.Replies:]
		default:
			c.reply.Values, values = values[:c.Replies:c.Replies], values[c.Replies:]
			c.err = refused(c.reply.Values)
		}
	}
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
