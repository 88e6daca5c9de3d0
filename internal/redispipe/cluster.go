package redispipe

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/lazy"
)

const (
	// pause is how long a call waits that no node takes, since the slot of its keys is on its
	// way.
	pause = 10 * time.Millisecond
	// maxRedirects keeps two nodes that contradict each other from sending a call to and fro.
	maxRedirects = 8
)

// cluster finds the queue of a node. The client knows which node has which slots.
type cluster struct {
	pipe   *Pipe
	client *redis.ClusterClient
	slots  *lazy.Value[struct{}] // done once the client has loaded the slots, which may dial

	mu     sync.RWMutex
	queues map[string]*queue // by the address of the node
}

func newCluster(p *Pipe, client *redis.ClusterClient) *cluster {
	load := func(ctx context.Context) (struct{}, error) {
		var err error
		if panicked := guard(func() { _, err = client.MasterForKey(ctx, "") }); panicked != nil {
			err = panicked
		}
		return struct{}{}, err
	}
	return &cluster{pipe: p, client: client, slots: lazy.New(load), queues: make(map[string]*queue)}
}

// queue returns the queue of the node that has a call's keys, before the call's deadline.
func (r *cluster) queue(c *call) (*queue, error) {
	if _, _, loaded := r.slots.Peek(); !loaded {
		ctx, cancel := context.WithDeadline(c.ctx, c.deadline)
		defer cancel()
		switch _, err := r.slots.Get(ctx); {
		case c.left():
			return nil, context.Cause(c.ctx)
		case err != nil:
			return nil, unsent(err)
		}
	}
	node, err := r.client.MasterForKey(c.ctx, c.firstKey())
	if err != nil {
		return nil, unsent(err)
	}
	return r.queueOf(node), nil
}

// queueOf returns the queue of the node that a client is for. A client that the Cluster's has
// closed since is replaced.
func (r *cluster) queueOf(node *redis.Client) *queue {
	addr := node.Options().Addr
	r.mu.RLock()
	q := r.queues[addr]
	r.mu.RUnlock()
	if q != nil && q.of == node {
		return q
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if q = r.queues[addr]; q == nil || q.of != node {
		q = newQueue(r.pipe, node)
		r.queues[addr] = q
	}
	return q
}

// queueAt returns the queue of the node at an address, which may be new to the client. from is
// the queue of another node.
func (r *cluster) queueAt(addr string, from *queue) *queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.queues[addr]; q != nil {
		return q
	}
	o := *from.of.Options()
	o.Addr = addr
	node := redis.NewClient(&o)
	runtime.AddCleanup(r.pipe, func(c *redis.Client) { _ = c.Close() }, node)
	r.queues[addr] = newQueue(r.pipe, node)
	return r.queues[addr]
}

// redirected reports whether a command was refused since its keys are on another node, or on
// their way, and sends its calls there.
func (q *queue) redirected(cmd *command) bool {
	r, err := q.pipe.cluster, cmd.Err()
	if r == nil || err == nil {
		return false
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		r.client.ReloadState(context.Background()) // the node may be gone
		return false
	}
	kind, rest, _ := strings.Cut(reply.Error(), " ")
	if kind != "MOVED" && kind != "ASK" && kind != "TRYAGAIN" {
		return false
	}
	if kind == "MOVED" {
		r.client.ReloadState(context.Background())
	}
	addr := target(rest, q)
	if addr == "" && kind != "TRYAGAIN" {
		return false
	}
	for _, c := range cmd.split() {
		if !c.state.CompareAndSwap(sent, waiting) {
			continue // its caller has left
		}
		c.asking = kind == "ASK"
		switch c.redirects++; {
		case kind == "TRYAGAIN": // as long as the slot is on its way, maybe after an ASK
			c.redirects = 0
			time.AfterFunc(pause, func() { r.again(c) })
		case c.redirects > maxRedirects:
			c.finish(Reply{}, reply)
		default:
			r.queueAt(addr, q).requeue(c)
		}
	}
	return true
}

// target returns the address in a redirection, which follows the slot, or "" if there is none. A
// node may leave out the host if it is that of the queue's. IPv6 addresses have no brackets.
func target(redirection string, q *queue) string {
	_, addr, _ := strings.Cut(redirection, " ")
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 || colon == len(addr)-1 {
		return ""
	}
	host := strings.Trim(addr[:colon], "[]")
	if host == "" {
		host, _, _ = net.SplitHostPort(q.of.Options().Addr)
	}
	return net.JoinHostPort(host, addr[colon+1:])
}

// again sends a call once more to the node that has its keys now.
func (r *cluster) again(c *call) {
	q, err := r.queue(c)
	if err != nil {
		c.finish(Reply{}, err)
		return
	}
	q.requeue(c)
}

// requeue queues a call again that was refused.
func (q *queue) requeue(c *call) {
	if calls := q.add(c); calls != nil {
		go q.run(calls)
	}
}
