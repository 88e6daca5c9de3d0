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
	until  time.Time // when trying again ends; zero before the first time

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
	t.doubt(cmds)
	t.end(func(i int, c *call) (answered bool) {
		c.reply, c.err = cmds[i].Result()
		switch {
		case t.p.again(c, t.deadline):
			return false
		case c.err == redis.Nil: // the script returned nil, or false
			c.err = nil
		case errors.Is(c.err, os.ErrDeadlineExceeded): // the connection's deadline is ours, too
			c.err = ErrTimeout
		}
		return true
	})
}

func (t *trip) giveUp() {
	t.mu.Lock()
	t.late = true
	close(t.done)
	t.mu.Unlock()
	t.p.reload()
	t.end(func(_ int, c *call) bool { c.err = ErrTimeout; return true })
}

// end answers all calls, unless they are answered, and lets the next trip begin. Those
// that answer does not, another trip will.
func (t *trip) end(answer func(i int, c *call) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	for i, c := range t.calls {
		if answer(i, c) {
			c.group.answered(1)
		}
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

// pause is how long a script waits that is to be tried again.
const pause = 10 * time.Millisecond

// again queues a call once more, after a pause, whose keys are on different nodes of a
// Cluster because their slot is on its way. Redis did not run it. Others of its trip
// don't wait for it, unless they are of its group. again tells whether it did: not beyond
// the deadline of the first trip.
func (p *Pipe) again(c *call, deadline time.Time) bool {
	if c.until.IsZero() {
		c.until = deadline
	}
	if !redis.IsTryAgainError(c.err) || time.Until(c.until) < pause {
		return false
	}
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		p.queue = append(p.queue, c)
		t := p.takeOff()
		p.mu.Unlock()
		if t != nil {
			t.fly()
		}
	})
	return true
}

// doubt reloads what the client knows of a Cluster if a node gave no answer.
func (t *trip) doubt(cmds []onceCmd) {
	for _, cmd := range cmds {
		var reply redis.Error
		if err := cmd.Err(); err != nil && !errors.As(err, &reply) {
			t.p.reload()
			return
		}
	}
}

// reload lets the client of a Cluster ask who the masters are. By itself it asks once a
// minute, or when a node sends it to another, which a dead one never does. It returns at
// once, and costs the Cluster a few questions a second at most.
func (p *Pipe) reload() {
	if c, ok := p.client.(*redis.ClusterClient); ok {
		c.ReloadState(context.Background())
	}
}
