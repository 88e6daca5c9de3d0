package redispipe

import (
	"slices"

	"github.com/redis/go-redis/v9"
)

// command is an EVALSHA or an EVAL.
type command struct {
	redis.Cmder
	calls []*call // the first call of each entry of a Batch, or a single call
	args  []any   // nil until go-redis asks for them
}

// NoRetry tells go-redis not to send a command again after a lost reply, because the script may have run.
func (*command) NoRetry() bool { return true }

// entry holds what equal calls of a Batch have in common.
type entry struct {
	batch  *Batch
	key    string
	n      int64
	asking bool
}

// commands returns the commands for calls. If oneSlot is set, which is necessary on a Cluster, each command has a single
// entry.
func commands(calls []*call, oneSlot bool) []*command {
	cmds := make([]*command, 0, 4)
	open := make(map[*Batch]*command, 4)
	var entries map[entry]*call
	for _, c := range calls {
		if b := c.Batch; b != nil && b.Join && len(calls) > 1 {
			if entries == nil {
				entries = make(map[entry]*call, len(calls))
			}
			e := entry{b, c.Key, c.N, c.asking}
			if first := entries[e]; first != nil {
				first.last.next, first.last = c, c
				continue
			}
			entries[e], c.last = c, c
		}
		cmd := open[c.Batch]
		if c.Batch == nil || oneSlot || cmd == nil || len(cmd.calls) == c.Batch.Max || cmd.calls[0].source != c.source {
			cmd = new(command)
			cmds = append(cmds, cmd)
			open[c.Batch] = cmd
		}
		cmd.calls = append(cmd.calls, c)
	}
	for _, cmd := range cmds {
		cmd.prepare()
	}
	return cmds
}

// prepare sets the go-redis command that reads the reply. The arguments come from [command.Args].
func (cmd *command) prepare() {
	c := cmd.calls[0]
	name := "evalsha"
	if c.source {
		name = "eval"
	}
	if c.script().ints {
		cmd.Cmder = redis.NewIntSliceCmd(c.ctx, name)
	} else {
		cmd.Cmder = redis.NewCmd(c.ctx, name)
	}
}

// Args returns the arguments. go-redis calls Args when it writes the command, and from then on the calls count as sent.
// Args leaves out the calls that were abandoned while the round trip waited for a connection, because their callers have
// already got ErrNotSent.
func (cmd *command) Args() []any {
	if cmd.args != nil {
		return cmd.args
	}
	kept := cmd.calls[:0]
	for _, c := range cmd.calls {
		if c = c.markEqualSent(); c != nil {
			kept = append(kept, c)
		}
	}
	if cmd.calls = kept; len(kept) == 0 {
		cmd.args = []any{"time"} // go-redis must write some command, and every user may run this one
	} else {
		cmd.args = cmd.arguments()
	}
	return cmd.args
}

// markEqualSent marks c and the equal calls after it as sent. It removes finished calls from the list and returns the
// first of the other calls, or nil.
func (c *call) markEqualSent() (first *call) {
	var last *call
	for ; c != nil; c = c.next {
		switch {
		case !c.markSent():
			continue
		case first == nil:
			first = c
		default:
			last.next = c
		}
		last = c
	}
	if last != nil {
		last.next = nil
	}
	return first
}

// arguments returns the name and the arguments of the EVALSHA or EVAL.
func (cmd *command) arguments() []any {
	c := cmd.calls[0]
	script, keys, args := c.script(), len(c.Keys), c.Args
	if c.Batch != nil {
		keys, args = len(cmd.calls), c.Batch.Args
	}
	text := script.sha
	if c.source {
		text = script.src
	}
	all := append(make([]any, 0, 3+3*keys+len(args)), cmd.Name(), text, keys)
	if c.Batch != nil {
		for _, c := range cmd.calls {
			all = append(all, c.Key)
		}
	}
	for _, key := range c.Keys {
		all = append(all, key)
	}
	all = append(all, args...)
	if slices.ContainsFunc(cmd.calls, func(c *call) bool { return c.Batch != nil && (c.N != 1 || c.next != nil) }) {
		for _, c := range cmd.calls {
			all = append(all, c.N, c.countEqual())
		}
	}
	return all
}

// countEqual returns the number of equal calls in the list that begins with c.
func (c *call) countEqual() (n int) {
	for ; c != nil; c = c.next {
		n++
	}
	return n
}

// split returns the calls of a command as separate calls.
func (cmd *command) split() (calls []*call) {
	for _, c := range cmd.calls {
		for c != nil {
			next := c.next
			c.next, c.last = nil, nil
			calls = append(calls, c)
			c = next
		}
	}
	return calls
}

// takeBack returns the calls of a refused command as separate calls, so that they can be sent in another way. It leaves
// out calls that were abandoned in the meantime.
func (cmd *command) takeBack() (calls []*call) {
	for _, c := range cmd.split() {
		if c.state.CompareAndSwap(sent, queued) {
			calls = append(calls, c)
		}
	}
	return calls
}

// deliver finishes each of the command's calls with its part of the reply from q's node.
func (cmd *command) deliver(q *queue) {
	reply, err := cmd.reply()
	b := cmd.calls[0].Batch
	if b != nil && err == nil && len(reply.Ints) != 1+b.Width*len(cmd.calls) {
		err = ErrUnreadable
	}
	switch {
	case err != nil:
		for _, c := range cmd.split() {
			c.fail(q, err)
		}
	case b != nil:
		cmd.deliverBatch(b, reply.Ints)
	default:
		cmd.calls[0].finish(reply, nil)
	}
}

// deliverBatch finishes the calls of a Batch with their parts of the reply.
func (cmd *command) deliverBatch(b *Batch, ints []int64) {
	for i, c := range cmd.calls {
		reply := Reply{Common: ints[0], Ints: ints[1+b.Width*i:][:b.Width:b.Width]}
		for c != nil {
			next := c.next // the caller may reuse a finished call
			c.finish(reply, nil)
			reply.Index++
			c = next
		}
	}
}

// hasReply reports whether Redis has sent a reply that is not an error. The reply may be unreadable.
func (cmd *command) hasReply() bool {
	switch c := cmd.Cmder.(type) {
	case *redis.IntSliceCmd:
		return c.Val() != nil
	case *redis.Cmd:
		return c.Val() != nil
	}
	return false
}

// reply returns the reply, or an error if the reply is an error or not an array.
func (cmd *command) reply() (r Reply, err error) {
	switch c := cmd.Cmder.(type) {
	case *redis.IntSliceCmd:
		r.Ints = c.Val()
	case *redis.Cmd:
		r.Values, _ = c.Val().([]any)
	}
	if err = cmd.Err(); err == nil && r.Ints == nil && r.Values == nil {
		err = ErrUnreadable
	}
	return r, err
}
