package redispipe

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// trip makes the round trip of calls and returns the calls of the next one.
func (q *queue) trip(calls []*call) (next []*call) {
	ctx, cancel := context.WithDeadline(context.Background(), latest(calls))
	defer cancel()
	began := time.Now()
	for calls != nil {
		cmds := commands(calls, q.pipe.apart.Load())
		if err := guard(func() { q.exec(ctx, cmds) }); err != nil {
			for _, c := range calls {
				c.finish(Reply{}, lost(err)) // the hook may have sent it before
			}
			break
		}
		calls = nil
		for _, cmd := range cmds {
			switch {
			case q.refused(cmd):
				calls = append(calls, cmd.split()...)
			case q.redirected(cmd):
			default:
				cmd.deliver()
			}
		}
	}
	return q.next(time.Since(began))
}

// exec sends commands in one write. Each has its reply or its error then.
func (q *queue) exec(ctx context.Context, cmds []*command) {
	if len(cmds) == 1 && !cmds[0].calls[0].asking {
		_ = q.client.Process(ctx, cmds[0])
		return
	}
	pipe := q.client.Pipeline()
	for _, cmd := range cmds {
		if cmd.calls[0].asking {
			_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
		}
		_ = pipe.Process(ctx, cmd)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		for _, cmd := range cmds {
			if cmd.Err() == nil && !cmd.answered() { // a hook has sent nothing
				cmd.SetErr(err)
			}
		}
	}
}

// refused reports whether the node did not run a command, and runs its calls if they are sent
// to it in another way.
func (q *queue) refused(cmd *command) bool {
	switch err := cmd.Err(); {
	case redis.HasErrorPrefix(err, "NOSCRIPT") && !cmd.calls[0].source:
		for _, c := range cmd.calls {
			c.source = true
		}
		return true
	case redis.HasErrorPrefix(err, "CROSSSLOT") && len(cmd.calls) > 1:
		q.pipe.apart.Store(true) // a node of a Cluster, behind a client for one server
		return true
	}
	return false
}
