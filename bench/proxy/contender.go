package proxy

import (
	"context"
	"fmt"
	"time"
)

// limit is a number of requests of a client in a time. The zero value means no limit.
type limit struct {
	n   int
	per time.Duration
}

var (
	unlimited = limit{}
	// plenty is far more than a client sends, but not more than needed: Caddy keeps the time of
	// each request that fits in the window.
	plenty = limit{10_000, time.Second}
	// few is used up during the warm-up, and nothing is refilled within a round.
	few = limit{5, time.Minute}
)

func (l limit) String() string { return fmt.Sprintf("%d/%gs", l.n, l.per.Seconds()) }

// setup is how a contender is started for a case.
type setup struct {
	limit limit
	redis bool
}

// contender is a proxy that is compared.
type contender struct {
	name   string
	start  func(ctx context.Context, b *bench, s setup) (*running, error)
	setups map[string]setup // by case; the contender takes part in no others
}

const (
	ours  = "lazyreq"
	bare  = "bare"
	nginx = "nginx"
	caddy = "caddy"
)

var inMemory = map[string]setup{none: {limit: unlimited}, ample: {limit: plenty}, denied: {limit: few}}

var contenders = []contender{
	{ours, startOurs, map[string]setup{
		none: inMemory[none], ample: inMemory[ample], denied: inMemory[denied], shared: {limit: plenty, redis: true},
	}},
	{bare, startBare, map[string]setup{none: inMemory[none]}},
	{nginx, startNginx, inMemory},
	{caddy, startCaddy, inMemory},
}

// running is a proxy that serves.
type running struct {
	addr string
	pids []int // of the processes that are the proxy
	// count returns the proxy's own count of requests. It is nil if the proxy has none.
	count func(context.Context) (int, error)
	close func() error
}
