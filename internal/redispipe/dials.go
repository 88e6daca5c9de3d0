package redispipe

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

const (
	// dialMemory is how long a failure to dial explains errors.
	dialMemory = 10 * time.Second
	// sentinelAddr is the Addr of go-redis's clients that ask Sentinels for the address.
	sentinelAddr = "FailoverClient"
)

// dials is a hook of a client that keeps why the last attempt to dial failed. Calls don't get that
// error: go-redis dials again in the background until their deadlines have passed.
type dials struct{ last atomic.Pointer[dialFailure] }

type dialFailure struct {
	err error
	at  time.Time
}

// dialsOf returns the hook of a client, and the same one each time.
func dialsOf(client *redis.Client) *dials {
	dialsMu.Lock()
	defer dialsMu.Unlock()
	key := weak.Make(client)
	d := allDials[key]
	if d == nil {
		d = new(dials)
		client.AddHook(d)
		allDials[key] = d
		runtime.AddCleanup(client, forgetDials, key)
	}
	return d
}

var (
	dialsMu  sync.Mutex
	allDials = map[weak.Pointer[redis.Client]]*dials{}
)

func forgetDials(key weak.Pointer[redis.Client]) {
	dialsMu.Lock()
	defer dialsMu.Unlock()
	delete(allDials, key)
}

// failure returns why the last attempt to dial failed, or nil if it did not, or long ago.
func (d *dials) failure() error {
	if f := d.last.Load(); f != nil && time.Since(f.at) < dialMemory {
		return f.err
	}
	return nil
}

// DialHook implements [redis.Hook].
func (d *dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		switch {
		case err == nil:
			d.last.Store(nil)
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
			d.last.Store(&dialFailure{dialCause(err), time.Now()})
		}
		return conn, err
	}
}

// ProcessHook implements [redis.Hook].
func (*dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (*dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dialCause returns what an error to dial an address has besides the address.
func dialCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return op.Err
	}
	return err
}
