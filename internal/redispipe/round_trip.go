package redispipe

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// roundTrip sends calls before a deadline, finishes them, and returns the calls of the next round trip. The client's hooks
// get the values of the first call's context, for example its span.
func (q *queue) roundTrip(calls []*call, deadline time.Time) (next []*call) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(calls[0].ctx), deadline)
	defer cancel()
	began, n := time.Now(), len(calls)
	for len(calls) > 0 {
		calls = q.send(ctx, calls)
	}
	return q.next(began, n)
}

// send sends calls in a single write and finishes them. It returns the calls that the node has refused and that must be
// sent in another way.
func (q *queue) send(ctx context.Context, calls []*call) (refused []*call) {
	cmds := commands(calls, q.pipe.oneSlot.Load())
	if err := guard(func() { q.exec(ctx, cmds) }); err != nil {
		for _, c := range calls {
			c.fail(q, err)
		}
		return nil
	}
	for _, cmd := range cmds {
		switch {
		case len(cmd.calls) == 0: // all calls were abandoned before they were sent
		case cmd.Err() == nil:
			cmd.deliver(q)
		case q.isRefused(cmd):
			refused = append(refused, cmd.takeBack()...)
		case !q.isRedirected(cmd):
			cmd.deliver(q)
		}
	}
	return refused
}

// exec sends commands in a single write. Afterwards, each command has a reply or an error.
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
			if cmd.Err() == nil && !cmd.hasReply() { // not sent because of a hook or the handshake
				cmd.SetErr(err)
			}
		}
	}
}

// isRefused reports whether the node has refused a command that can be sent in another way: with the script's source, or
// with a single key. It changes the calls or the pipe accordingly.
func (q *queue) isRefused(cmd *command) bool {
	switch err := cmd.Err(); {
	case redis.HasErrorPrefix(err, "NOSCRIPT") && !cmd.calls[0].source:
		for _, c := range cmd.calls {
			c.source = true
		}
		return true
	case redis.HasErrorPrefix(err, "CROSSSLOT") && len(cmd.calls) > 1:
		q.pipe.oneSlot.Store(true) // the server is a node of a Cluster, although the client is not a Cluster client
		return true
	}
	return false
}
