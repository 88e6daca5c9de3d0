package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
)

// work is the main function of a worker process. It waits for the leases of all users, and works for the users whose
// leases it gets. It returns when ctx or in ends.
func (o options) work(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	ro, err := redis.ParseURL(o.URL)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(ro)
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Options{Prefix: "workers:"})
	if err != nil {
		return err
	}
	leases, err := coord.NewLeases(store, coord.LeaseOptions{
		Lifetime:    time.Second,     // the users of a killed worker wait for this time
		MaxLifetime: 8 * time.Second, // a worker keeps a user no longer than this
		Name:        o.Name,
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range o.Users {
		wg.Go(func() { workForUser(ctx, leases, &ledger{client, fmt.Sprintf("user %d", i+1), out}) })
	}
	wg.Wait()
	return nil
}

// workForUser works for one user whenever this process gets the user's lease.
func workForUser(ctx context.Context, leases *coord.Leases, l *ledger) {
	for ctx.Err() == nil {
		lease, err := leases.Wait(ctx, l.user)
		if err == nil {
			err = lease.Run(ctx, func(ctx context.Context) error { return doSteps(ctx, lease, l) })
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, coord.ErrEnded):
			l.print("that was long enough")
		case err != nil:
			l.print(err.Error())
			wait(ctx, 100*time.Millisecond)
		default:
			l.print("done for now")
			wait(ctx, time.Second)
		}
	}
}

// doSteps does some steps of work. Each step uses the lease's fencing number.
func doSteps(ctx context.Context, lease *coord.Lease, l *ledger) error {
	for range 2 + rand.IntN(10) {
		n, err := l.step(ctx, lease.Number())
		if err != nil {
			return err
		}
		l.print(fmt.Sprintf("step %d, under number %d", n, lease.Number()))
		wait(ctx, time.Second)
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// wait returns after the duration d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ledger is the data that workers write. It refuses a write if the fencing number is below the largest number so far.
// Such a write comes from a worker that has not noticed the end of its lease.
type ledger struct {
	client *redis.Client
	user   string
	out    io.Writer
}

var errFenced = errors.New("refused: another worker has a larger number")

var stepScript = redis.NewScript(`
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'number') or 0) then return 0 end
redis.call('HSET', KEYS[1], 'number', ARGV[1])
redis.call('EXPIRE', KEYS[1], 3600)
return redis.call('HINCRBY', KEYS[1], 'steps', 1)`)

// step counts one more step and returns the number of steps.
func (l *ledger) step(ctx context.Context, number int64) (int64, error) {
	n, err := stepScript.Run(ctx, l.client, []string{"workers:ledger:" + l.user}, number).Int64()
	if err == nil && n == 0 {
		err = errFenced
	}
	return n, err
}

func (l *ledger) print(what string) { fmt.Fprintf(l.out, "%s: %s\n", l.user, what) }
