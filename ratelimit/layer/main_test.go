package layer

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A pool that could not dial asks once a second whether it can, and notices only then
	// that it is closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
