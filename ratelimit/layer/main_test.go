package layer

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests mostly wait, so there may be more than processors
	if testenv.Racing {                // the race detector makes rapid twenty times as slow
		_ = flag.Set("rapid.checks", "30")
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}
