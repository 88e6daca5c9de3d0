package redispipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pipe sends scripts to one Redis. It is safe for concurrent use, owns no goroutine that
// outlives its calls by more than their timeout, and needs no closing.
type Pipe struct {
	single  *queue   // of a client for one server
	cluster *cluster // of a Cluster's client

	// apart is set if an EVALSHA may have keys of one slot only.
	apart atomic.Bool
}

// New returns a pipe over client, which stays the caller's to close. It does not talk to Redis
// yet.
func New(client redis.UniversalClient) (*Pipe, error) {
	if err := check(client); err != nil {
		return nil, err
	}
	p := new(Pipe)
	switch c := client.(type) {
	case *redis.Client:
		p.single = newQueue(p, c)
	case *redis.ClusterClient:
		p.cluster = newCluster(p, c)
		p.apart.Store(true)
	}
	return p, nil
}

// check returns an error if there is no pipe over client.
func check(client redis.UniversalClient) error {
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			return nil
		}
	case *redis.ClusterClient:
		if c != nil {
			return nil
		}
	case nil:
	default:
		return fmt.Errorf("redispipe: client is a %T, want a *redis.Client or a *redis.ClusterClient", client)
	}
	return errors.New("redispipe: no client")
}

// Run runs a call and returns its reply. An error reply is a redis.Error. When ctx or timeout
// ends before there is a reply, the error is the cause of ctx, [ErrNotSent] or [ErrNoReply]; a
// call that goes out on its caller's goroutine may notice the end of ctx only at its deadline.
func (p *Pipe) Run(ctx context.Context, timeout time.Duration, what Call) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	c := newCall(ctx, time.Now().Add(timeout), what)
	q, err := p.queue(c)
	if err != nil {
		return Reply{}, err
	}
	q.do(c)
	return c.outcome()
}

// Result is what a call of RunAll got.
type Result struct {
	Reply
	Err error
}

// RunAll runs calls as Run does, all at once and in any order.
func (p *Pipe) RunAll(ctx context.Context, timeout time.Duration, what []Call) []Result {
	results, sent := make([]Result, len(what)), make([]*call, len(what))
	if ctx.Err() != nil {
		for i := range results {
			results[i].Err = context.Cause(ctx)
		}
		return results
	}
	deadline, queues := time.Now().Add(timeout), make(map[*queue][]*call)
	for i := range what {
		c := newCall(ctx, deadline, what[i])
		q, err := p.queue(c)
		if err != nil {
			results[i].Err = err
			continue
		}
		sent[i], queues[q] = c, append(queues[q], c)
	}
	for q, calls := range queues {
		if first := q.add(calls...); first != nil {
			go q.run(first)
		}
	}
	for i, c := range sent {
		if c != nil {
			c.wait()
			results[i].Reply, results[i].Err = c.outcome()
		}
	}
	return results
}

// queue returns the queue of the node that has a call's keys.
func (p *Pipe) queue(c *call) (*queue, error) {
	if p.single != nil {
		return p.single, nil
	}
	return p.cluster.queue(c)
}
