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
	// retryPause is the time between tries while the slot of a call's keys is being moved.
	retryPause = 10 * time.Millisecond
	// maxRedirects limits the redirections of a call, in case two nodes redirect it to each other.
	maxRedirects = 8
	// maxLoads is the maximum number of concurrent loads of the slots. They begin loadPause apart.
	maxLoads  = 20
	loadPause = 10 * time.Millisecond
)

// cluster finds the queue of a call's node. Its client knows the slots of each node.
type cluster struct {
	pipe   *Pipe
	client *redis.ClusterClient
	slots  *lazy.Value[struct{}] // is set when the client has loaded the slots

	mu     sync.RWMutex
	queues map[string]*queue // by the node's address
}

func newCluster(p *Pipe, client *redis.ClusterClient) *cluster {
	// With this hook, a node that is down also fails at once when the client loads the slots.
	client.OnNewNode(addFailFast)
	return &cluster{pipe: p, client: client, slots: lazy.New(loader(client)), queues: make(map[string]*queue)}
}

// loader returns a function that makes the client load the slots. A load asks one node after the other, in random order,
// and a node that hangs delays it for seconds. So the function starts other loads until one of them ends.
func loader(client *redis.ClusterClient) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (none struct{}, _ error) {
		ended := make(chan error, maxLoads)
		pause := time.NewTicker(loadPause)
		defer pause.Stop()
		for loads := 0; ; loads++ {
			if loads < maxLoads {
				go func() { ended <- loadSlots(ctx, client) }()
			}
			select {
			case err := <-ended:
				return none, err
			case <-ctx.Done():
				return none, context.Cause(ctx)
			case <-pause.C:
			}
		}
	}
}

// loadSlots makes the client load the slots, which it does to find the node of any key.
func loadSlots(ctx context.Context, client *redis.ClusterClient) (err error) {
	if panicked := guard(func() { _, err = client.MasterForKey(ctx, "") }); panicked != nil {
		return panicked
	}
	return err
}

// queue returns the queue of the node that has the call's keys. If the slots are not known, it waits for them until the
// call's deadline.
func (r *cluster) queue(c *call) (*queue, error) {
	if _, _, loaded := r.slots.Peek(); !loaded {
		ctx, cancel := context.WithDeadline(c.ctx, c.deadline)
		defer cancel()
		switch _, err := r.slots.Get(ctx); {
		case c.contextEnded():
			return nil, context.Cause(c.ctx)
		case err != nil:
			return nil, r.slotsError(err)
		}
	}
	node, err := r.client.MasterForKey(c.ctx, c.firstKey())
	if err != nil {
		return nil, r.slotsError(err)
	}
	return r.queueOf(node), nil
}

// queueOf returns the queue of a node. If the queue belongs to an earlier client of this node, which the Cluster's client
// has closed, queueOf replaces the queue.
func (r *cluster) queueOf(node *redis.Client) *queue {
	addr := node.Options().Addr
	r.mu.RLock()
	q := r.queues[addr]
	r.mu.RUnlock()
	if q != nil && q.node == node {
		return q
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if q = r.queues[addr]; q == nil || q.node != node {
		q = newQueue(r.pipe, node)
		r.queues[addr] = q
	}
	return q
}

// queueAt returns the queue of the node at an address. If there is none, for example because the Cluster's client does not
// know this node, queueAt makes a client with the options of the client other.
func (r *cluster) queueAt(addr string, other *redis.Client) *queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.queues[addr]; q != nil {
		return q
	}
	o := *other.Options()
	o.Addr = addr
	node := redis.NewClient(&o)
	runtime.AddCleanup(r.pipe, func(c *redis.Client) { _ = c.Close() }, node)
	r.queues[addr] = newQueue(r.pipe, node)
	return r.queues[addr]
}

// isRedirected reports whether a node refused a command because another node has the command's keys or is about to get
// them. It queues the command's calls for the other node.
func (q *queue) isRedirected(cmd *command) bool {
	r, err := q.pipe.cluster, cmd.Err()
	if r == nil {
		return false
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		r.client.ReloadState(context.Background()) // the node may be gone
		return false
	}
	kind, rest, _ := strings.Cut(reply.Error(), " ")
	addr := redirectAddr(rest, q.node)
	switch {
	case kind == "MOVED":
		r.client.ReloadState(context.Background())
	case kind != "ASK" && kind != "TRYAGAIN":
		return false
	}
	if addr == "" && kind != "TRYAGAIN" {
		return false
	}
	for _, c := range cmd.takeBack() {
		c.asking = kind == "ASK"
		switch c.redirects++; {
		case kind == "TRYAGAIN": // the slot is being moved
			c.redirects = 0
			time.AfterFunc(retryPause, func() { r.retry(c) })
		case c.redirects > maxRedirects:
			c.fail(q, reply)
		default:
			r.queueAt(addr, q.node).start(c)
		}
	}
	return true
}

// redirectAddr returns the address in a redirection, or "" if it is invalid. The address follows the slot. It may have no
// host if the host is that of node, and IPv6 addresses may have no brackets.
func redirectAddr(redirection string, node *redis.Client) string {
	_, addr, _ := strings.Cut(redirection, " ")
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 || colon == len(addr)-1 {
		return ""
	}
	host := strings.Trim(addr[:colon], "[]")
	if host == "" {
		host, _, _ = net.SplitHostPort(node.Options().Addr)
	}
	return net.JoinHostPort(host, addr[colon+1:])
}

// retry sends a call to the node that now has the call's keys.
func (r *cluster) retry(c *call) {
	if q, err := r.queue(c); err != nil {
		c.finish(Reply{}, err)
	} else {
		q.start(c)
	}
}
