package torture_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// clock is the clock of a Redis server, which keys expire by, too. It stands still.
type clock struct {
	t    *testing.T
	file *os.File
	now  int64 // microseconds since 1970
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

// startAt starts a Redis server whose clock shows a time.
func startAt(t *testing.T, at time.Time) (*testhost.Redis, *clock) {
	file, args := newClock(t)
	c := &clock{t: t, file: file, now: at.UnixMicro()}
	c.advance(0)
	return testhost.StartRedis(t, args...), c
}

// advance moves the clock.
func (c *clock) advance(d time.Duration) {
	c.now += d.Microseconds()
	write(c.t, c.file, c.now, 0)
}

func (c *clock) time() time.Time { return time.UnixMicro(c.now) }
