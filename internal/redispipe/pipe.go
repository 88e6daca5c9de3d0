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

// Pipe sends scripts to a Redis server or Cluster. It is safe for concurrent use and need not be closed. Its goroutines end
// when the timeouts of its calls have passed, or earlier. Only goroutines that load a Cluster's slots from a node that hangs
// can last longer, up to the client's ReadTimeout.
type Pipe struct {
	single  *queue   // for a client of one server
	cluster *cluster // for a client of a Cluster

	oneSlot atomic.Bool // all keys of an EVALSHA must be in the same slot
}

// For returns the pipe for a client. All stores that use the same client get the same pipe, so that they share round trips.
// The caller closes the client. For does not connect to Redis.
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

// pipes holds the pipe of each client, as long as the pipe is in use.
var (
	pipesMu sync.Mutex
	pipes   = map[redis.UniversalClient]weak.Pointer[Pipe]{}
)

// forget removes the entry of a garbage-collected pipe, unless a new pipe has replaced it.
func forget(client redis.UniversalClient) {
	pipesMu.Lock()
	defer pipesMu.Unlock()
	if pipes[client].Value() == nil {
		delete(pipes, client)
	}
}

// open returns a new pipe for a client.
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

// Run runs a call and returns its reply. An error reply is a redis.Error. If ctx or timeout ends before the reply, the
// error is the cause of ctx, [ErrNotSent] or [ErrNoReply]. If the call is sent on this goroutine, Run may notice only at
// the call's deadline that ctx was canceled.
func (p *Pipe) Run(ctx context.Context, timeout time.Duration, what Call) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	c := newCall(ctx, time.Now().Add(timeout), what)
	if err := p.route(c); err != nil {
		return Reply{}, err
	}
	c.first.do(c)
	return c.result()
}

// Result is the result of one call of [Pipe.RunAll].
type Result struct {
	Reply
	Err error
}

// RunAll runs calls like Run does, but all at the same time and in any order.
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
		if err := p.route(c); err != nil {
			results[i].Err = err
			continue
		}
		running[i], queues[c.first] = c, append(queues[c.first], c)
	}
	for q, calls := range queues {
		q.start(calls...)
	}
	for i, c := range running {
		if c != nil {
			c.wait()
			results[i].Reply, results[i].Err = c.result()
		}
	}
	return results
}

// route sets c.first to the queue of the node that has the call's keys.
func (p *Pipe) route(c *call) (err error) {
	if c.first = p.single; c.first == nil {
		c.first, err = p.cluster.queue(c)
	}
	return err
}
