package redispipe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// Pipe sends scripts to one Redis. It is safe for concurrent use and needs no closing. None of its
// goroutines outlives its calls by more than their timeout, except that a load of a Cluster's slots
// from a node that hangs lasts for the client's ReadTimeout.
type Pipe struct {
	single  *queue   // of a client for one server
	cluster *cluster // of a Cluster's client

	oneSlot atomic.Bool // whether an EVALSHA may have keys of one slot only
}

// For returns the pipe over client, and the same one each time while it is in use, so that the
// stores on one client share round trips. The caller closes the client. For does not connect to
// Redis.
func For(client redis.UniversalClient) (*Pipe, error) {
	p, err := open(client)
	if err != nil {
		return nil, err
	}
	pipesMu.Lock()
	defer pipesMu.Unlock()
	if inUse := pipes[client].Value(); inUse != nil {
		return inUse, nil
	}
	pipes[client] = weak.Make(p)
	runtime.AddCleanup(p, forget, client)
	return p, nil
}

// pipes holds the pipes in use.
var (
	pipesMu sync.Mutex
	pipes   = map[redis.UniversalClient]weak.Pointer[Pipe]{}
)

// forget removes the entry of a collected pipe, unless a new pipe has replaced it.
func forget(client redis.UniversalClient) {
	pipesMu.Lock()
	defer pipesMu.Unlock()
	if pipes[client].Value() == nil {
		delete(pipes, client)
	}
}

// open returns a new pipe over client.
func open(client redis.UniversalClient) (*Pipe, error) {
	p := new(Pipe)
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			p.single = newQueue(p, c)
			return p, nil
		}
	case *redis.ClusterClient:
		if c != nil {
			p.cluster = newCluster(p, c)
			p.oneSlot.Store(true)
			return p, nil
		}
	case nil:
	default:
		return nil, fmt.Errorf("client is a %T, want a *redis.Client or a *redis.ClusterClient", client)
	}
	return nil, errors.New("no client")
}

// Run runs a call and returns its reply. An error reply is a redis.Error. If ctx or timeout ends
// before the reply, the error is the cause of ctx, [ErrNotSent] or [ErrNoReply]. A call that is sent
// on its caller's goroutine may notice the end of ctx only at its deadline.
func (p *Pipe) Run(ctx context.Context, timeout time.Duration, what Call) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	c := newCall(ctx, time.Now().Add(timeout), what)
	q, err := p.queue(c)
	if err != nil {
		return Reply{}, err
	}
	c.first = q
	q.do(c)
	return c.result()
}

// Result is the result of one call of [Pipe.RunAll].
type Result struct {
	Reply
	Err error
}

// RunAll runs calls as Run does, at the same time and in any order.
func (p *Pipe) RunAll(ctx context.Context, timeout time.Duration, what []Call) []Result {
	results, running := make([]Result, len(what)), make([]*call, len(what))
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
		c.first = q
		running[i], queues[q] = c, append(queues[q], c)
	}
	for q, calls := range queues {
		if first := q.add(calls...); first != nil {
			go q.run(first)
		}
	}
	for i, c := range running {
		if c != nil {
			c.wait()
			results[i].Reply, results[i].Err = c.result()
		}
	}
	return results
}

// queue returns the queue of the node with a call's keys.
func (p *Pipe) queue(c *call) (*queue, error) {
	if p.single != nil {
		return p.single, nil
	}
	return p.cluster.queue(c)
}
