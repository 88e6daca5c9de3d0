package redisstore_test

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// fight is a test in which workers in many processes compete for the leases of some users. Meanwhile, processes are
// killed and stopped.
type fight struct {
	processes, users int
	length           time.Duration
}

// fightLeases lets a worker that is not killed renew its lease for up to five seconds.
var fightLeases = coord.LeaseOptions{Lifetime: time.Second, MaxLifetime: 5 * time.Second, Poll: 200 * time.Millisecond}

// seen is an event that a worker reports.
type seen struct {
	What     string // "ready", "got", "alive", or "wrote"
	User     string
	Number   int64
	At       time.Time
	Order    int64
	Accepted bool
}

// fenced is the script of a target that refuses a number below the largest that it has seen.
var fenced = redis.NewScript(`
local n, top = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'top') or 0)
local order = redis.call('HINCRBY', KEYS[1], 'order', 1)
if n < top then return {order, 0} end
redis.call('HSET', KEYS[1], 'top', ARGV[1])
return {order, 1}`)

// worker is one of the processes that compete for leases.
type worker struct {
	leases *coord.Leases
	client *redis.Client
	mu     sync.Mutex
	enc    *gob.Encoder
}

func (w *worker) say(s seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.enc.Encode(s) // fails if the parent has ended
}

// serve runs the workers of a process until in ends.
func (f fight) serve(t *testing.T, addr string, in io.Reader, out io.Writer) {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	defer c.Close()
	w := &worker{leases: newLeases(t, newStore(t, c, redisstore.Options{}), fightLeases), client: c, enc: gob.NewEncoder(out)}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	w.say(seen{What: "ready"})
	var wg sync.WaitGroup
	for u := range f.users {
		wg.Go(func() {
			for ctx.Err() == nil {
				if lease, err := w.leases.Wait(ctx, fmt.Sprint(u)); err == nil {
					_ = lease.Run(ctx, func(ctx context.Context) error { return w.work(ctx, lease) })
				} else {
					pass(10 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

// work writes again and again for a random time, as long as the worker holds the lease.
func (w *worker) work(ctx context.Context, l *coord.Lease) error {
	w.say(seen{What: "got", User: l.User(), Number: l.Number(), At: time.Now()})
	end := time.After(rand.N(3 * time.Second))
	for {
		now := time.Now() // at this time, the lease is held if the next check finds no error
		if ctx.Err() != nil {
			return nil
		}
		w.say(seen{What: "alive", User: l.User(), Number: l.Number(), At: now})
		pass(rand.N(5 * time.Millisecond)) // a worker that is stopped here writes too late
		if reply, err := fenced.Run(context.Background(), w.client, []string{"fenced:" + l.User()}, l.Number()).Int64Slice(); err == nil {
			w.say(seen{What: "wrote", User: l.User(), Number: l.Number(), Order: reply[0], Accepted: reply[1] == 1})
		}
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// arena is the parent of the processes. It collects their events.
type arena struct {
	t       *testing.T
	f       fight
	addr    string
	ready   chan struct{}
	readers sync.WaitGroup

	mu   sync.Mutex
	n    int // the number of processes that were started
	run  leaseRun
	open map[[2]any]*leaseHold // the holds that were observed so far, by process and number
}

// run runs the fight. It returns the error of checkLeases.
func (f fight) run(t *testing.T) error {
	testhost.ServeProcess(t, func(addr string, in io.Reader, out io.Writer) { f.serve(t, addr, in, out) })
	server := testhost.StartRedis(t)
	a := &arena{
		t: t, f: f, addr: server.Addr, ready: make(chan struct{}, 1000), open: make(map[[2]any]*leaseHold),
		run: leaseRun{Unattended: fightLeases.Lifetime + time.Second},
	}
	for u := range f.users {
		a.run.Users = append(a.run.Users, fmt.Sprint(u))
	}
	running := make([]*testhost.Process, f.processes)
	for i := range running {
		running[i] = a.begin()
	}
	for range running {
		<-a.ready
	}
	a.run.From = time.Now().Round(0)
	killed, stopped := a.attack(running)
	a.run.To = time.Now().Round(0)
	for _, p := range running {
		p.End(t)
	}
	a.readers.Wait()
	refused := 0
	for _, h := range a.open {
		if !h.To.IsZero() { // the worker has found at least once that it is the holder
			a.run.Holds = append(a.run.Holds, *h)
		}
	}
	for _, w := range a.run.Writes {
		if !w.Accepted {
			refused++
		}
	}
	t.Logf("%d killed, %d stopped; %d leases, %d writes, of which %d were refused",
		killed, stopped, len(a.run.Holds), len(a.run.Writes), refused)
	require.NotEmpty(t, a.run.Holds)
	require.NotEmpty(t, a.run.Writes)
	require.Positive(t, killed)
	require.Positive(t, stopped)
	return checkLeases(a.run)
}

// begin starts a process and reads its events.
func (a *arena) begin() *testhost.Process {
	p := testhost.StartProcess(a.t, a.addr)
	a.mu.Lock()
	a.n++
	process := a.n
	a.mu.Unlock()
	a.readers.Go(func() {
		for dec := gob.NewDecoder(p.Out); ; {
			var s seen
			if dec.Decode(&s) != nil {
				return // the process has ended, perhaps in the middle of an event
			}
			a.note(process, s)
		}
	})
	return p
}

func (a *arena) note(process int, s seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := [2]any{process, s.User + fmt.Sprint(s.Number)}
	switch s.What {
	case "ready":
		a.ready <- struct{}{}
	case "got":
		a.open[k] = &leaseHold{User: s.User, Process: process, Number: s.Number, From: s.At.Round(0)}
	case "alive":
		a.open[k].To = s.At.Round(0)
	case "wrote":
		a.run.Writes = append(a.run.Writes, leaseWrite{User: s.User, Process: process, Number: s.Number, Order: s.Order, Accepted: s.Accepted})
	}
}

// attack kills and stops processes while they compete. It replaces killed processes with new ones, and resumes
// stopped processes.
func (a *arena) attack(running []*testhost.Process) (killed, stopped int) {
	resume := make(map[int]time.Time) // when to resume each stopped process, by its index
	for end := time.Now().Add(a.f.length); time.Now().Before(end); {
		pass(50*time.Millisecond + rand.N(250*time.Millisecond))
		i := rand.IntN(len(running))
		switch _, still := resume[i]; {
		case !still && rand.IntN(2) == 0:
			running[i].Pause()
			resume[i] = time.Now().Add(rand.N(2500 * time.Millisecond))
			stopped++
		case len(resume) < len(running)/2 || still:
			running[i].Kill()
			running[i] = a.begin()
			delete(resume, i)
			killed++
		}
		for i, at := range resume {
			if time.Now().After(at) || len(resume) > len(running)/2 {
				running[i].Resume()
				delete(resume, i)
			}
		}
	}
	for i := range resume {
		running[i].Resume()
	}
	return killed, stopped
}

func TestProcessesCompeteForLeases(t *testing.T) {
	require.NoError(t, fight{processes: 8, users: 20, length: testenv.Duration(t, 4*time.Second)}.run(t))
}
