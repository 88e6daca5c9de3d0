package redispipe

import (
	"runtime"
	"sync"
	"weak"

	"github.com/redis/go-redis/v9"
)

// shared has the pipes that are in use, by what they were made from.
var (
	sharedMu sync.Mutex
	shared   = map[sharedKey]weak.Pointer[Pipe]{}
)

type sharedKey struct {
	client redis.UniversalClient
	o      Options
}

// For returns the pipe over client with these options, the same one for everybody
// who asks, so that different stores on one client share round trips. It lives as
// long as somebody holds it.
func For(client redis.UniversalClient, o Options) (*Pipe, error) {
	key := sharedKey{client, o.withDefaults()}
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if p := shared[key].Value(); p != nil {
		return p, nil
	}
	p, err := New(client, o)
	if err != nil {
		return nil, err
	}
	shared[key] = weak.Make(p)
	runtime.AddCleanup(p, forget, key)
	return p, nil
}

// forget takes the entry of a pipe away that is gone, unless it has a successor.
func forget(key sharedKey) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared[key].Value() == nil {
		delete(shared, key)
	}
}
