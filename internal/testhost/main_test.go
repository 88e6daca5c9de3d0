package testhost

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // the tests wait for the servers, not for a processor
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(Lingers))
}
