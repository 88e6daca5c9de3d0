package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/rig"
)

// fault is a known fault, and the programs that could have it.
type fault struct {
	name     string
	waits    bool // its programs wait most of the time, so they run at the same time
	programs []program
}

// program is a peer, or a part of lazyreq.
type program struct {
	name string
	// check runs the program with the Redis at addr. It returns a text for the table, and a number for the progress.
	check func(ctx context.Context, addr string) (seen string, n int, err error)
}

// known are the faults of the table.
var known = []fault{
	{"Denied takes are charged", false, programs(severalUnits, checkDenied)},
	{"`Remaining` is wrong, at 1 to 1000 per minute", false, programs(all, checkRemaining)},
	{"Units in a second at a window's end, of 100 per 10 s", true, programs(all, checkEdge)},
	{"All units come back", true, programs(all, checkReturn)},
	{"Failed calls, of 64 callers with one key", false, programs(onRedis, checkHotKey)},
	{"Units that 32 instances admit, of 100", false, programs(onRedis, checkInstances)},
	{"An IPv4-mapped address is another client", false, addressPrograms(checkMapped)},
	{"Each address of a /64 is another client", false, addressPrograms(checkPrefix)},
	{"Values lost when 50 requests write to a session", false, sessionPrograms(checkWriters)},
	{"A slow request revives a session after its logout", false, sessionPrograms(checkLogout)},
}

// Run looks for all faults and writes the table to out. It returns an error if a program could not be run. The table
// then says so. There is no table if ctx is canceled.
func Run(ctx context.Context, out, progress io.Writer) error {
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		r := &run{addr: addr, progress: progress, ping: func(ctx context.Context) error { return client.Ping(ctx).Err() }}
		seen := r.checkAll(ctx, known)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, err := io.WriteString(out, table(known, seen))
		return errors.Join(err, r.err)
	})
}

// run is a run of all programs.
type run struct {
	addr     string
	ping     func(context.Context) error // of the Redis at addr
	mu       sync.Mutex
	progress io.Writer
	err      error // of the programs that could not be run
}

// checkAll returns what was seen, by fault and program.
func (r *run) checkAll(ctx context.Context, faults []fault) [][]string {
	seen := make([][]string, len(faults))
	for _, waits := range []bool{true, false} {
		var running sync.WaitGroup
		for i, f := range faults {
			if f.waits != waits {
				continue
			}
			seen[i] = make([]string, len(f.programs))
			for j, p := range f.programs {
				running.Go(func() { seen[i][j] = r.check(ctx, f.name, p) })
				if !waits {
					running.Wait()
				}
			}
		}
		running.Wait()
	}
	return seen
}

// check runs a program. Without Redis, or if ctx is canceled, what was seen means nothing.
func (r *run) check(ctx context.Context, fault string, p program) (seen string) {
	var n int
	err := r.ping(ctx)
	if err == nil {
		seen, n, err = p.check(ctx, r.addr)
	}
	if err == nil {
		err = r.ping(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		seen = "could not be run"
		r.err = errors.Join(r.err, fmt.Errorf("%s, %s: %w", fault, p.name, err))
	}
	fmt.Fprintf(r.progress, "%s, %s: %s (%d)\n", fault, p.name, seen, n)
	return seen
}
