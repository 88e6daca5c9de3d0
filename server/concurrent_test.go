package server_test

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/gob"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// crowd is a test in which the callers of several processes share a [ratelimit.Concurrent]. Meanwhile, processes are killed
// and stopped.
type crowd struct {
	processes, callers int
	limit              int64
	life, length       time.Duration
}

// report is an event of a request: first its charge, and then its handler's end and its release.
type report struct {
	ID string
	At int64 // in microseconds
}

// reporting is a store that reports charges and releases.
type reporting struct {
	ratelimit.Store
	say func(id string, at int64)
}

// idOf returns the request's ID, which the caller has chosen.
func idOf(ctx context.Context) string { return reqctx.From(ctx).Request().Header.Get("Id") }

func (s reporting) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	res, err := s.Store.DoOne(ctx, op)
	if res.Allowed {
		s.say(idOf(ctx), res.Receipt.At)
	}
	return res, err
}

func (s reporting) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	s.say(idOf(ctx), time.Now().UnixMicro())
	return s.Store.Do(ctx, ops)
}

// serve runs a server and its callers until in ends.
func (c crowd) serve(t *testing.T, addr string, in io.Reader, out io.Writer) {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	store, err := ratestore.New(client, ratestore.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	var mu sync.Mutex
	enc := gob.NewEncoder(out)
	say := func(id string, at int64) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(report{id, at}) // fails if the parent has ended
	}
	p := ratelimit.NewPolicy("p", ratelimit.ByIP(), ratelimit.Concurrent(c.limit).WithLife(c.life))
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: reporting{store, say}})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		<-time.After(rand.N(300 * time.Millisecond))
		say(idOf(req), time.Now().UnixMicro())
		return nil
	}, server.Require(p))
	url, caller := listenItself(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	var wg sync.WaitGroup
	for range c.callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				c.call(ctx, caller, url)
			}
		})
	}
	wg.Wait()
}

// call sends a request. Some callers leave before the response. After a denial, it waits for a moment.
func (c crowd) call(ctx context.Context, caller *http.Client, url string) {
	limited, cancel := context.WithTimeout(ctx, rand.N(500*time.Millisecond))
	defer cancel()
	r, _ := http.NewRequestWithContext(limited, "GET", url, nil)
	r.Header.Set("Id", crand.Text())
	if res, err := caller.Do(r); err == nil {
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
	<-time.After(rand.N(10 * time.Millisecond))
}

// stay is the time for which a request must count, in microseconds. to is 0 if the end was not reported.
type stay struct{ from, to int64 }

// stays collects the stays of all processes.
type stays struct {
	mu   sync.Mutex
	list []stay
}

// read reads the reports of a process until it ends. A request counts until the end of its life or its last report.
func (s *stays) read(from io.Reader, life time.Duration) {
	all := map[string]stay{}
	for dec := gob.NewDecoder(from); ; {
		var v report
		if dec.Decode(&v) != nil {
			break // the process has ended, perhaps in the middle of a report
		}
		if begun, ok := all[v.ID]; ok {
			all[v.ID] = stay{begun.from, v.At}
		} else {
			all[v.ID] = stay{from: v.At}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range all {
		end := one.from + life.Microseconds()
		s.list = append(s.list, stay{one.from, min(cmp.Or(one.to, end), end)})
	}
}

// most returns the largest number of stays at a time, and the longest time without the beginning of a stay.
func (s *stays) most() (together int, pause time.Duration) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, stay := range s.list {
		changes = append(changes, change{stay.from, 1}, change{stay.to, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, last := 0, changes[0].at
	for _, c := range changes {
		if now += c.by; c.by > 0 {
			together, pause = max(together, now), max(pause, time.Duration(c.at-last)*time.Microsecond)
			last = c.at
		}
	}
	return together, pause
}

// run runs the crowd, and returns the stays of the requests.
func (c crowd) run(t *testing.T) *stays {
	testhost.ServeProcess(t, func(addr string, in io.Reader, out io.Writer) { c.serve(t, addr, in, out) })
	addr := testhost.StartRedis(t).Addr
	all := &stays{}
	var readers sync.WaitGroup
	begin := func() *testhost.Process {
		p := testhost.StartProcess(t, addr)
		readers.Go(func() { all.read(p.Out, c.life) })
		return p
	}
	running := make([]*testhost.Process, c.processes)
	for i := range running {
		running[i] = begin()
	}
	killed, stopped := 0, 0
	for end := time.Now().Add(c.length); time.Now().Before(end); {
		<-time.After(50*time.Millisecond + rand.N(250*time.Millisecond))
		if i := rand.IntN(len(running)); rand.IntN(2) == 0 {
			running[i].Pause()
			time.AfterFunc(rand.N(c.life*3/2), running[i].Resume)
			stopped++
		} else {
			running[i].Kill()
			running[i] = begin()
			killed++
		}
	}
	for _, p := range running {
		p.Resume()
		p.End(t)
	}
	readers.Wait()
	t.Logf("%d killed, %d stopped; %d requests", killed, stopped, len(all.list))
	require.Positive(t, killed)
	require.Positive(t, stopped)
	return all
}

// TestProcessesShareAConcurrent checks that no more requests are in progress than the limit allows, and that the units of
// killed and stopped processes come back.
func TestProcessesShareAConcurrent(t *testing.T) {
	c := crowd{processes: 8, callers: 3, limit: 3, life: time.Second, length: testenv.Duration(t, 3*time.Second)}
	together, pause := c.run(t).most()
	require.EqualValues(t, c.limit, together)
	require.Less(t, pause, c.life+2*time.Second)
}
