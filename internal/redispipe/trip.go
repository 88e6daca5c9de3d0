package redispipe

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

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

// begin makes the trip, and then the next ones, as long as there are any that may begin.
func (t *trip) begin() {
	if next := t.fly(); next != nil {
		go func() {
			for t := next; t != nil; {
				t = t.fly()
			}
		}()
	}
}

// fly sends the calls and hands out the replies. At the deadline it is given up:
// the calls fail and the pipe goes on, even if the client still waits. It returns the
// trip that takes its place.
func (t *trip) fly() (next *trip) {
	t.deadline = time.Now().Add(t.p.o.Timeout)
	timer := time.AfterFunc(t.p.o.Timeout, t.giveUp)
	lists, cmds := t.exec()
	timer.Stop()
	t.doubt(cmds)
	return t.end(func() {
		for i, calls := range lists {
			answer(calls, cmds[i])
		}
	})
}

func (t *trip) giveUp() {
	t.mu.Lock()
	t.late = true
	close(t.done)
	t.mu.Unlock()
	t.p.reload()
	next := t.end(func() {
		for _, c := range t.calls {
			c.err = ErrTimeout
		}
	})
	if next != nil {
		next.begin()
	}
}

// end lets answer answer all calls, unless they are answered, and returns the next trip.
// Another one takes those that are to be tried again.
func (t *trip) end(answer func()) (next *trip) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	t.over = true
	answer()
	for _, c := range t.calls {
		if t.p.again(c, t.deadline) {
			continue
		}
		if errors.Is(c.err, os.ErrDeadlineExceeded) { // the connection's deadline is ours, too
			c.err = ErrTimeout
		}
		c.group.answered()
	}
	return t.p.land()
}

// exec runs the calls and returns them as they were joined, and what each list got.
func (t *trip) exec() ([][]*call, []command) {
	apart := t.p.apart.Load()
	lists := join(t.calls, apart, t.p.o.Joined)
	cmds := t.run(lists)
	if apart || !slotsCrossed(cmds) {
		return lists, cmds
	}
	// A node of a Cluster behind a client for one server. Those calls have not run.
	t.p.apart.Store(true)
	for i := len(lists) - 1; i >= 0; i-- {
		if redis.HasErrorPrefix(cmds[i].Err(), crossSlot) {
			again := join(lists[i], true, t.p.o.Joined)
			lists = append(append(lists[:i:i], again...), lists[i+1:]...)
			cmds = append(append(cmds[:i:i], t.run(again)...), cmds[i+1:]...)
		}
	}
	return lists, cmds
}

const crossSlot = "CROSSSLOT"

func slotsCrossed(cmds []command) bool {
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), crossSlot) {
			return true
		}
	}
	return false
}

// run runs scripts by their hashes, and once more by their sources those that Redis
// did not know: these have not run.
func (t *trip) run(lists [][]*call) []command {
	cmds := t.pipeline(lists, "evalsha", (*Script).Hash)
	var unknown [][]*call
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			unknown = append(unknown, lists[i])
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

func (t *trip) pipeline(lists [][]*call, name string, script func(*Script) string) []command {
	cmds := make([]command, len(lists))
	for i, calls := range lists {
		cmds[i] = newCommand(t, calls, name, script(calls[0].Script))
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
