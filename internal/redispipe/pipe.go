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
	p := new(Pipe)
	switch c := client.(type) {
	case nil:
		return nil, errors.New("redispipe: no client")
	case *redis.Client:
		p.single = newQueue(p, c)
	case *redis.ClusterClient:
		p.cluster = newCluster(p, c)
		p.apart.Store(true)
	default:
		return nil, fmt.Errorf("redispipe: client is a %T, want a *redis.Client or a *redis.ClusterClient", client)
	}
	return p, nil
}

// Run runs a call and returns its reply. An error reply is a redis.Error. When ctx or timeout
// ends before there is a reply, the error is the cause of ctx, [ErrNotSent] or [ErrNoReply]; a
// call that goes out on its caller's goroutine may notice the end of ctx only at its deadline.
func (p *Pipe) Run(ctx context.Context, timeout time.Duration, what Call) (Reply, error) {
	c := newCall(ctx, timeout)
	c.Call = what
	return p.do(c)
}

// RunBatch runs a call of a batch as Run does: n units of key.
func (p *Pipe) RunBatch(ctx context.Context, timeout time.Duration, b *Batch, key string, n int64) (Reply, error) {
	c := newCall(ctx, timeout)
	c.batch, c.key[0], c.n = b, key, n
	c.Call = Call{Script: b.Script, Keys: c.key[:], Args: b.Args}
	return p.do(c)
}

func (p *Pipe) do(c *call) (Reply, error) {
	if c.ctx.Err() != nil {
		return Reply{}, context.Cause(c.ctx)
	}
	q := p.single
	if q == nil {
		var err error
		if q, err = p.cluster.queue(c); err != nil {
			return Reply{}, err
		}
	}
	q.do(c)
	return c.outcome()
}
