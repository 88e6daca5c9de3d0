package redispipe

import (
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// command is an EVALSHA, or an EVAL.
type command struct {
	redis.Cmder
	calls []*call // of a Batch, the first call of each entry; otherwise one
}

// NoRetry keeps go-redis from sending the command again when it got no reply: the script may
// have run.
func (*command) NoRetry() bool { return true }

// entry is what equal calls of a Batch have in common.
type entry struct {
	batch  *Batch
	key    string
	n      int64
	asking bool
}

// commands makes the commands of calls. If apart is set, an EVALSHA has keys of one call only,
// as it must on a Cluster.
func commands(calls []*call, apart bool) []*command {
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
		if c.Batch == nil || apart || cmd == nil || len(cmd.calls) == c.Batch.Max || cmd.calls[0].source != c.source {
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

// prepare makes what go-redis sends.
func (cmd *command) prepare() {
	c, script := cmd.calls[0], cmd.calls[0].Script
	if c.Batch != nil {
		script = c.Batch.Script
	}
	name, which := "evalsha", script.sha
	if c.source {
		name, which = "eval", script.src
	}
	var args []any
	if c.Batch != nil {
		args = cmd.batchArgs(c.Batch, name, which)
	} else {
		args = append(make([]any, 0, 3+len(c.Keys)+len(c.Args)), name, which, len(c.Keys))
		for _, key := range c.Keys {
			args = append(args, key)
		}
		args = append(args, c.Args...)
	}
	if script.ints {
		cmd.Cmder = redis.NewIntSliceCmd(c.ctx, args...)
	} else {
		cmd.Cmder = redis.NewCmd(c.ctx, args...)
	}
}

func (cmd *command) batchArgs(b *Batch, name, which string) []any {
	args := append(make([]any, 0, 3+len(b.Args)+3*len(cmd.calls)), name, which, len(cmd.calls))
	for _, c := range cmd.calls {
		args = append(args, c.Key)
	}
	args = append(args, b.Args...)
	if !slices.ContainsFunc(cmd.calls, func(c *call) bool { return c.N != 1 || c.next != nil }) {
		return args
	}
	for _, c := range cmd.calls {
		args = append(args, c.N, c.equal())
	}
	return args
}

// equal returns how many equal calls a call is the first of.
func (c *call) equal() (n int) {
	for ; c != nil; c = c.next {
		n++
	}
	return n
}

// split returns the calls of a command, ready to be sent again.
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

// deliver gives each call its part of the reply.
func (cmd *command) deliver() {
	reply, err := cmd.reply()
	if b := cmd.calls[0].Batch; b != nil {
		cmd.deliverBatch(b, reply.Ints, err)
		return
	}
	cmd.calls[0].finish(reply, err)
}

func (cmd *command) deliverBatch(b *Batch, ints []int64, err error) {
	if err == nil && len(ints) != 1+b.Width*len(cmd.calls) {
		err = ErrUnreadable
	}
	for i, c := range cmd.calls {
		var reply Reply
		if err == nil {
			reply = Reply{Common: ints[0], Ints: ints[1+b.Width*i:][:b.Width:b.Width]}
		}
		for c != nil {
			next := c.next // once it has its outcome, c is its caller's
			c.finish(reply, err)
			reply.Index++
			c = next
		}
	}
}

// answered reports whether a command has a reply.
func (cmd *command) answered() bool {
	if c, ok := cmd.Cmder.(*redis.IntSliceCmd); ok {
		return c.Val() != nil
	}
	return cmd.Cmder.(*redis.Cmd).Val() != nil
}

func (cmd *command) reply() (r Reply, err error) {
	switch c := cmd.Cmder.(type) {
	case *redis.IntSliceCmd:
		r.Ints, err = c.Result()
	case *redis.Cmd:
		var ok bool
		if r.Values, ok = c.Val().([]any); !ok && c.Err() == nil {
			return r, ErrUnreadable
		}
		err = c.Err()
	}
	var refusal redis.Error
	if err != nil && !errors.As(err, &refusal) {
		err = lost(err)
	}
	return r, err
}
