package layer

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests wait for outages and bursts, not for a processor
	if testenv.Racing {                // under which a sequence takes twenty times as long
		_ = flag.Set("rapid.checks", "30")
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}
