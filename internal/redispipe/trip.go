package redispipe

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one script and whoever waits for it.
type call struct {
	ctx    context.Context // the caller's
	script *Script
	keys   []string
	args   []any
	group  *group

	reply any // final once the group is done
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

// command makes the call's command, by the script's hash or its source.
func (c *call) command(ctx context.Context, name, script string) onceCmd {
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	args = append(args, name, script, len(c.keys))
	for _, k := range c.keys {
		args = append(args, k)
	}
	cmd := redis.NewCmd(ctx, append(args, c.args...)...)
	if len(c.keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return onceCmd{cmd}
}

// onceCmd is a command that go-redis must not send again when it did not get the
// reply: the script may have run.
type onceCmd struct{ *redis.Cmd }

// NoRetry is what go-redis asks.
func (onceCmd) NoRetry() bool { return true }

// trip is one round trip with its calls. It is the context of its commands, too:
// one that ends at the deadline.
type trip struct {
	p        *Pipe
	calls    []*call
	deadline time.Time
	done     chan struct{} // closed at the deadline

	mu   sync.Mutex
	over bool // every call has its answer
	late bool // done is closed
}

func newTrip(p *Pipe, calls []*call) *trip {
	return &trip{p: p, calls: calls, done: make(chan struct{})}
}

// Deadline is when the trip is given up.
func (t *trip) Deadline() (time.Time, bool) { return t.deadline, true }

// Done is closed when the trip is given up.
func (t *trip) Done() <-chan struct{} { return t.done }

// Err is [ErrTimeout] when the trip was given up.
func (t *trip) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late {
		return ErrTimeout
	}
	return nil
}

// Value returns nil: a trip has several callers.
func (t *trip) Value(any) any { return nil }

// fly sends the calls and hands out the replies. At the deadline it is given up:
// the calls fail and the pipe goes on, even if the client still waits.
func (t *trip) fly() {
	t.deadline = time.Now().Add(t.p.o.Timeout)
	timer := time.AfterFunc(t.p.o.Timeout, t.giveUp)
	cmds := t.exec()
	timer.Stop()
	t.end(func(i int, c *call) {
		c.reply, c.err = cmds[i].Result()
		switch {
		case c.err == redis.Nil: // the script returned nil, or false
			c.err = nil
		case errors.Is(c.err, os.ErrDeadlineExceeded): // the connection's deadline is ours, too
			c.err = ErrTimeout
		}
	})
}

func (t *trip) giveUp() {
	t.mu.Lock()
	t.late = true
	close(t.done)
	t.mu.Unlock()
	t.end(func(_ int, c *call) { c.err = ErrTimeout })
}

// end answers all calls, unless they are answered, and lets the next trip begin.
func (t *trip) end(answer func(i int, c *call)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	for i, c := range t.calls {
		answer(i, c)
		c.group.answered(1)
	}
	t.p.land()
}

// exec runs the scripts by their hashes, and once more by their sources those that
// Redis did not know: these have not run.
func (t *trip) exec() []onceCmd {
	cmds := t.pipeline(t.calls, "evalsha", (*Script).Hash)
	var unknown []*call
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			unknown = append(unknown, t.calls[i])
		}
	}
	if len(unknown) == 0 {
		return cmds
	}
	again := t.pipeline(unknown, "eval", (*Script).Source)
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmds[i], again = again[0], again[1:]
		}
	}
	return cmds
}

func (t *trip) pipeline(calls []*call, name string, script func(*Script) string) []onceCmd {
	cmds := make([]onceCmd, len(calls))
	for i, c := range calls {
		cmds[i] = c.command(t, name, script(c.script))
	}
	if len(cmds) == 1 {
		_ = t.p.client.Process(t, cmds[0]) // the command has its error
		return cmds
	}
	pipe := t.p.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(t, cmd)
	}
	_, _ = pipe.Exec(t) // each command has its own error
	return cmds
}
