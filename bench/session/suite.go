package session

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
)

const (
	inFlight = 50
	visitors = 256
	poolSize = 64
)

// load is the mix of a case: how many of ten requests read their session and how many
// change it; the others don't need it.
type load struct {
	name        string
	read, write int
}

var cases = []load{
	{"10% read", 1, 0},
	{"10% write", 0, 1},
	{"100% read", 10, 0},
}

var metrics = []harness.Metric{
	{Name: "redis commands per request", Exact: true},
	{Name: "throughput", Unit: "req/s", More: true},
	{Name: "redis cpu per request", Unit: "µs"},
	{Name: "server cpu per request", Unit: "µs"},
}

// Contender makes a handler of these routes, on the Redis at addr:
//
//	POST /login   begins a session of the visitor in the query
//	GET /light    responds "light", and needs no session
//	GET /me       responds with the visitor's name
//	POST /visit   counts a visit in the session
//
// The suite does not use these:
//
//	POST /put     sets the value that the query names, reads the body, and then saves the session
//	GET /get      responds with the value that the query names
//	POST /logout  ends the session
type Contender struct {
	Name string
	ours bool
	Open func(addr string) (http.Handler, func() error, error)
}

// Contenders are all of them, ours first.
var Contenders = []Contender{
	{"lazyreq", true, openLazyreq},
	{"scs", false, openSCS},
	{"gorilla", false, openGorilla},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "session",
		About: fmt.Sprintf("sessions on one Redis, %d requests in flight of %d visitors, without a network to the client", inFlight, visitors),
		Run:   run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	rounds, length := 7, 2*time.Second
	if r.Quick {
		rounds, length = 5, 400*time.Millisecond
	}
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		for _, l := range cases {
			var list []harness.Contender
			for _, c := range Contenders {
				list = append(list, harness.Contender{Name: c.Name, Ours: c.ours, Start: func(context.Context) (harness.Instance, error) {
					return openInstance(c, addr, client, l, length)
				}})
			}
			if err := r.Compare(ctx, l.name, rounds, metrics, list); err != nil {
				return err
			}
		}
		return nil
	})
}
