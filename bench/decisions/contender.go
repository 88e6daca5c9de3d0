package decisions

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/rig"
)

// poolSize is how many connections a client may have, if it uses more than one.
const poolSize = 64

// Quota is so many units in a time, for each key.
type Quota struct {
	Limit int
	Per   time.Duration
}

var (
	// wide is a limit that no client reaches.
	wide = Quota{100_000_000, 10 * time.Second}
	// narrow is what all reach. No unit of it comes back in a round.
	narrow = Quota{100, 24 * time.Hour}
)

// Contender is one of those that are compared.
type Contender struct {
	Name string
	// Open returns a client of the Redis at addr.
	Open func(addr string) (Client, error)
	// OneUnit is set if each take is of a single unit, whatever n is.
	OneUnit bool

	// sends are the commands that it sends, as Redis counts them: without those that
	// only its scripts run.
	sends []string
	// loose marks a contender that decides nothing: how many it admits is not checked.
	loose bool
}

// Client makes limiters that share its connections.
type Client struct {
	Limiter func(q Quota) (Take, error)
	Close   func() error
}

// Take takes n units of a key, or none. It is safe for concurrent use.
type Take func(ctx context.Context, key string, n int) (Decision, error)

// Decision is the result of a take.
type Decision struct {
	Allowed bool
	// Remaining is the number of units that can still be taken, according to the contender.
	Remaining int
}

// scripts are what those send who leave everything to a script.
var scripts = []string{"evalsha", "eval"}

func newClient(addr string) *redis.Client { return rig.NewClient(addr, poolSize) }
