package torture_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// TestRedisMatchesModel compares Redis with the model of storetest. Unlike in other tests, the scripts read the
// server's clock, and keys expire by it.
func TestRedisMatchesModel(t *testing.T) {
	t.Parallel()
	file, args := newClock(t)
	clock := &clock{t: t, file: file, now: time.UnixMicro(1<<50 + 123_457)}
	clock.Advance(0)
	client := testhost.StartRedis(t, args...).Client(nil)
	store, err := redisstore.New(client, redisstore.Options{Timeout: time.Minute})
	require.NoError(t, err)
	const lists = 300
	rnd := random(t)
	// The tiers of a GCRA expire at different times. A rule of the calendar also reads this machine's clock.
	supports := func(r ratelimit.Rule) bool {
		return (r.Algorithm() != "gcra" || r.Limit() == 1) && r.Layout().Period == 0
	}
	run := func(tb storetest.TB, store ratelimit.Store) {
		require.NoError(t, client.FlushAll(t.Context()).Err())
		s := storetest.Sequence{TB: tb, Store: store, Clock: clock, Supports: supports, Draw: rnd.IntN}
		s.Run(lists)
	}
	for end := time.Now().Add(length(t, 2*time.Second)); time.Now().Before(end); {
		run(t, store)
		tally("Redis against a model, keys expire by a clock of the test", row{times: 1, takes: lists, other: true})
	}

	// The model finds a store whose keys expire too early.
	hasty := &buggy{store, func(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
		results, err := inner.Do(ctx, ops)
		for _, key := range client.Keys(ctx, "*").Val() {
			client.PExpire(ctx, key, 1500*time.Millisecond)
		}
		return results, err
	}}
	found, ended := &failures{T: t}, make(chan struct{})
	go func() {
		defer close(ended)
		for {
			run(found, hasty)
		}
	}()
	<-ended
	require.NotEmpty(t, found.text)
}

// failures is a testing.TB that records failures and does not fail the test.
type failures struct {
	*testing.T
	text string
}

func (f *failures) Logf(string, ...any) {}

func (f *failures) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// clock is the clock of a Redis server. It stands still until Advance.
type clock struct {
	t    *testing.T
	file *os.File
	now  time.Time
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Advance(d time.Duration) {
	c.now = c.now.Add(d)
	write(c.t, c.file, c.now.UnixMicro(), 0)
}

// newClock returns the file of a clock, and arguments of Redis servers that have this clock.
func newClock(t *testing.T) (file *os.File, args []string) {
	dir := t.TempDir()
	library := filepath.Join(dir, "clock.so")
	out, err := exec.Command(testenv.LookPath(t, "gcc"), "-O1", "-shared", "-fPIC", "-o", library, filepath.Join("testdata", "clock.c"), "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file, err = os.Create(filepath.Join(dir, "clock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file, []string{"LAZYREQ_CLOCK=" + file.Name(), "LD_PRELOAD=" + library}
}

// write writes the file of a clock: microseconds, and 1 if they are added to this machine's time.
func write(t *testing.T, file *os.File, micros, added int64) {
	b := binary.NativeEndian.AppendUint64(nil, uint64(micros))
	_, err := file.WriteAt(binary.NativeEndian.AppendUint64(b, uint64(added)), 0)
	require.NoError(t, err)
}
