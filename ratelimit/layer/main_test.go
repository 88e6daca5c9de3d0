package layer

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(redistest.Lingers)) }
