package torture_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	parallel := "10" // tests that run in parallel mostly wait
	if long() {
		parallel = "4"
	}
	_ = flag.Set("test.parallel", parallel)
	redis.SetLogger(silence{})
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers), goleak.Cleanup(func(code int) {
		if long() {
			fmt.Print(summarize())
		}
		os.Exit(code)
	}))
}

// silence is a logger for go-redis that drops its messages about refused connections.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// long reports whether the schedules run in their long form.
func long() bool { return testenv.IsLong() }

// length returns the duration of a schedule: the value of LAZYREQ_TORTURE, or short if it is not set.
func length(t *testing.T, short time.Duration) time.Duration {
	return testenv.Duration(t, short)
}

// random returns the source of a schedule, and logs its seed.
func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LAZYREQ_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("LAZYREQ_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
