package redispipe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrTimeout says that Redis did not answer within Options.Timeout. The scripts
// may have run.
var ErrTimeout = errors.New("redis: no answer in time")

// Options configure a [Pipe]. The zero value is usable.
type Options struct {
	// Timeout bounds a round trip, a connection's dialling included. Default: 250 ms.
	Timeout time.Duration
	// InFlight is how many round trips may be under way at once; what is called
	// meanwhile shares the next one. Default: 2.
	InFlight int
	// Batch is the largest number of calls in a round trip; of a list, each key counts.
	// Default: 256.
	Batch int
	// Joined is the largest number of calls, and of the keys of lists, in one EVALSHA:
	// Redis does nothing else while it runs. Of calls that aren't lists no more than 64 are
	// joined. Default: 128.
	Joined int
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}
	if o.InFlight == 0 {
		o.InFlight = 2
	}
	if o.Batch == 0 {
		o.Batch = 256
	}
	if o.Joined == 0 {
		o.Joined = 128
	}
	return o
}

func (o Options) check() error {
	for _, f := range []struct {
		name  string
		value int64
	}{{"Timeout", int64(o.Timeout)}, {"InFlight", int64(o.InFlight)}, {"Batch", int64(o.Batch)}, {"Joined", int64(o.Joined)}} {
		if f.value < 0 {
			return fmt.Errorf("redispipe: Options.%s is negative", f.name)
		}
	}
	return nil
}

// Pipe sends scripts to one Redis. All methods may be called concurrently. It owns
// neither the client nor any goroutine that outlives its calls by more than a
// client's timeout.
type Pipe struct {
	client redis.UniversalClient
	o      Options

	// apart says that calls are joined only within a slot: the client is, or turned
	// out to be, a Cluster's.
	apart atomic.Bool

	mu     sync.Mutex
	queue  []*call
	flying int // round trips under way, those that were given up not counted
}

// New returns a pipe over client, which stays the caller's to close.
func New(client redis.UniversalClient, o Options) (*Pipe, error) {
	if client == nil {
		return nil, errors.New("redispipe: no client")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c, single := client.(*redis.Client)
	if single {
		// The same pool, but reads and writes that end with the round trip. A Cluster
		// client has no such copy; there a round trip is given up at its deadline.
		client = c.WithTimeout(o.Timeout)
	}
	p := &Pipe{client: client, o: o}
	p.apart.Store(!single)
	return p, nil
}

// Run runs a call and returns its reply. When ctx ends first, Run returns its cause: a
// call that still waited for its turn is then not sent, one that was sent may have
// run. An error reply is a redis.Error.
func (p *Pipe) Run(ctx context.Context, what Call) (Reply, error) {
	return p.runAlone(ctx, what)
}

// Apart tells whether the client is, or turned out to be, one of a Cluster: a call's keys
// must be in one slot.
func (p *Pipe) Apart() bool { return p.apart.Load() }

// RunAll runs calls as Run does, all at once and in any order, and returns the reply or
// the error of each, or the cause of ctx's end.
func (p *Pipe) RunAll(ctx context.Context, what []Call) ([]Reply, error) {
	if len(what) == 0 {
		return nil, nil
	}
	g := newGroup(len(what))
	list, calls := make([]call, len(what)), make([]*call, len(what))
	for i := range what {
		list[i] = call{Call: what[i], ctx: ctx, group: g}
		calls[i] = &list[i]
	}
	if err := p.await(ctx, g, calls...); err != nil {
		return nil, err
	}
	replies := make([]Reply, len(list))
	for i := range list {
		replies[i] = list[i].reply
		replies[i].Err = list[i].err
	}
	return replies, nil
}

// alone is a call that is its own group.
type alone struct {
	call
	group group
}

var alones = sync.Pool{New: func() any { return &alone{group: group{done: make(chan struct{}, 1)}} }}

func (p *Pipe) runAlone(ctx context.Context, what Call) (Reply, error) {
	a := alones.Get().(*alone)
	a.group.left.Store(1)
	a.call = call{Call: what, ctx: ctx, group: &a.group}
	if err := p.await(ctx, &a.group, &a.call); err != nil {
		return Reply{}, err
	}
	reply, err := a.reply, a.err
	if err == nil { // else a trip that was given up may still use it
		a.call = call{}
		alones.Put(a)
	}
	return reply, err
}

// await queues calls, which are g's, and returns when all of them are answered, or with
// the cause of ctx's end.
func (p *Pipe) await(ctx context.Context, g *group, calls ...*call) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	p.queue = append(p.queue, calls...)
	free := p.flying < p.o.InFlight
	p.mu.Unlock()
	if free {
		runtime.Gosched() // whoever is ready to add something does so now
		p.mu.Lock()
		t := p.takeOff()
		p.mu.Unlock()
		switch {
		case t == nil:
		case ctx.Done() == nil && t.calls[0] == calls[0]:
			t.run()
		default:
			go t.runAll()
		}
	}
	if ctx.Done() == nil {
		<-g.done
		return nil
	}
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// takeOff returns a round trip with what is queued, to be run by the caller, or
// nil if none may begin. The caller holds p.mu.
func (p *Pipe) takeOff() *trip {
	if p.flying >= p.o.InFlight {
		return nil
	}
	calls := p.wanted()
	if len(calls) == 0 {
		return nil
	}
	p.flying++
	return newTrip(p, calls)
}

// land ends a round trip and returns the next, if there is one.
func (p *Pipe) land() *trip {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying--
	return p.takeOff()
}

// wanted takes a batch of those calls from the queue whose callers are still
// there. The caller holds p.mu.
func (p *Pipe) wanted() []*call {
	calls := make([]*call, 0, min(len(p.queue), p.o.Batch))
	rest, size := len(p.queue), 0
	for i, c := range p.queue {
		if size += c.size(); size > p.o.Batch && len(calls) > 0 {
			rest = i
			break
		}
		if c.ctx.Err() == nil {
			calls = append(calls, c)
		} else {
			size -= c.size()
			c.err = context.Cause(c.ctx)
			c.group.answered()
		}
	}
	p.queue = slices.Delete(p.queue, 0, rest)
	return calls
}
