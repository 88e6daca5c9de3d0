package decisions

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/rig"
)

// poolSize is how many connections a client may have, if it uses more than one.
const poolSize = 64

// quota is so many units in a time, for each key.
type quota struct {
	limit int
	per   time.Duration
}

var (
	// wide is a limit that no client reaches.
	wide = quota{100_000_000, 10 * time.Second}
	// narrow is what all reach. No unit of it comes back in a round.
	narrow = quota{100, 24 * time.Hour}
)

// contender is one of those that are compared.
type contender struct {
	name string
	open func(addr string, q quota) (limiter, error)
	// sends are the commands that it sends, as Redis counts them: without those that
	// only its scripts run.
	sends []string
	// loose marks a contender that decides nothing: how many it admits is not checked.
	loose bool
}

// limiter has one quota for each key. It is safe for concurrent use.
type limiter struct {
	take  func(ctx context.Context, key string) (bool, error)
	close func() error
}

// scripts are what those send who leave everything to a script.
var scripts = []string{"evalsha", "eval"}

func newClient(addr string) *redis.Client { return rig.NewClient(addr, poolSize) }
