package torture_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

var discard = slog.New(slog.DiscardHandler)

// sessionHost holds the faults of a schedule and the servers whose sessions are tested.
type sessionHost struct {
	apps       []http.Handler
	perEpisode int
	begun      func([]*visit)       // if not nil, called with the first sessions of an episode
	shardOf    func(key string) int // if not nil, returns the shard of a key
	faults     []fault
}

func TestSessionsOnSingleRedis(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"durable": testhost.Durable, "volatile": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testhost.StartRedis(t, args...)
			client, proxy := faultproxy.NewClient(t, s)
			var loses func() []int
			if args == nil {
				loses = always
			}
			h := &sessionHost{
				apps: []http.Handler{newSessionApp(t, client), newSessionApp(t, s.Client(nil))}, perEpisode: 3,
				faults: append(networkFaults(t, proxy), serverFaults(t, s, loses)...),
			}
			require.NoError(t, h.run(t, length(t, 3*time.Second)))
		})
	}
}

func TestSessionsOnCluster(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t, append(testhost.Durable, "--cluster-require-full-coverage", "no")...)
	var slots [masters]int // for each shard, a slot of the current episode's sessions
	client := c.Client(nil)
	h := &sessionHost{
		apps: []http.Handler{newSessionApp(t, client), newSessionApp(t, c.Client(nil))}, perEpisode: 2,
		begun: func(visits []*visit) {
			for _, v := range visits {
				slot := c.Slot(v.key())
				slots[slot*masters/16384] = slot
			}
		},
	}
	h.shardOf = func(key string) int { return c.Slot(key) * masters / 16384 }
	for i := range masters {
		h.faults = append(h.faults, shardFaults(c, i, &slots)...)
	}
	require.NoError(t, h.run(t, length(t, 0)))
}

// TestSessionsWithSentinel starts a new Sentinel for each failover.
func TestSessionsWithSentinel(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(length(t, 0))
	for i := 0; i == 0 || time.Now().Before(end); i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := testhost.StartSentinel(t, testhost.Durable...)
			dial := func(o *redis.FailoverOptions) { o.DialTimeout = time.Second }
			h := &sessionHost{
				apps: []http.Handler{newSessionApp(t, s.Client(dial)), newSessionApp(t, s.Client(dial))}, perEpisode: 1,
				faults: []fault{{
					name: "Sentinel: the master crashes", shard: all, loses: always,
					settle: func() int64 { from := now(); s.WaitReplicated(); return from },
					begin:  func(time.Duration) func() { s.KillMaster(); return nil },
				}},
			}
			require.NoError(t, h.run(t, 0))
		})
	}
}

// newSessionApp returns an application that keeps its sessions in Redis.
func newSessionApp(t *testing.T, c redis.UniversalClient) http.Handler {
	s, err := redisstore.New(c, redisstore.Options{Timeout: timeout})
	require.NoError(t, err)
	return newApp(t, s)
}

// run carries out a schedule for the time length, in episodes with different users, and returns the first violation.
func (h *sessionHost) run(t *testing.T, length time.Duration) error {
	rnd, end := random(t), time.Now().Add(length)
	for number := 1; ; number++ {
		v := newVisits(h.apps, 10)
		stop := v.call(t.Context())
		defer stop()
		v.awaitLogins(h)
		var outages []outage
		for range h.perEpisode {
			f := &h.faults[rnd.IntN(len(h.faults))]
			o := f.happen(rnd)
			outages = append(outages, o)
			if !v.awaitAnswer(o.ended) {
				err := fmt.Errorf("episode %d: no request succeeds after %v", number, o)
				tallyRequests(nil, outages, err)
				return err
			}
		}
		stop()
		if err := v.readAll(t.Context()); err != nil {
			tallyRequests(nil, outages, err)
			return err
		}
		for _, visit := range v.logins {
			if h.shardOf != nil {
				visit.shard, visit.userShard = h.shardOf(visit.key()), h.shardOf(visit.userKey())
			}
		}
		err := checkVisits(v.requests, outages)
		tallyRequests(v.requests, outages, err)
		if err != nil {
			return fmt.Errorf("episode %d: %w", number, err)
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// key returns the key of a session.
func (v *visit) key() string {
	locator, _, _ := strings.Cut(v.cookie(0).Value, ".")
	return "session:" + locator
}

// userKey returns the key of the index of the user's sessions.
func (v *visit) userKey() string {
	sum := sha256.Sum256([]byte(v.user))
	return "session:user:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// awaitLogins waits until there are sessions, and calls h.begun.
func (v *visits) awaitLogins(h *sessionHost) {
	for {
		<-time.After(5 * time.Millisecond)
		v.mu.Lock()
		n := len(v.logins)
		v.mu.Unlock()
		if n >= len(v.accounts) {
			break
		}
	}
	if h.begun != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		h.begun(v.logins)
	}
}

// awaitAnswer waits for the answer to a request that was sent after a given time.
func (v *visits) awaitAnswer(after int64) bool {
	for range 2000 {
		if v.answered.Load() >= after {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

// readAll reads each session once more, after the faults have ended.
func (v *visits) readAll(ctx context.Context) error {
	for _, visit := range v.logins {
		for tries := 0; v.send(ctx, visit, visit.latest(), "GET /read").status != 200; tries++ {
			if tries == 100 {
				return fmt.Errorf("a session cannot be read")
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	return nil
}
