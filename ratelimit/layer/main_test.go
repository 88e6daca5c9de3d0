package layer

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests wait for outages and bursts, not for a processor
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(redistest.Lingers))
}
