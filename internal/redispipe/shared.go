package redispipe

import (
	"runtime"
	"sync"
	"weak"

	"github.com/redis/go-redis/v9"
)

// shared has the pipes that are in use, by their clients.
var (
	sharedMu sync.Mutex
	shared   = map[redis.UniversalClient]weak.Pointer[Pipe]{}
)

// For returns the pipe over client, the same one each time while it is in use, so that
// different stores on one client share round trips.
func For(client redis.UniversalClient) (*Pipe, error) {
	if err := check(client); err != nil { // it may be what a map can't have
		return nil, err
	}
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if p := shared[client].Value(); p != nil {
		return p, nil
	}
	p, err := New(client)
	if err != nil {
		return nil, err
	}
	shared[client] = weak.Make(p)
	runtime.AddCleanup(p, forget, client)
	return p, nil
}

// forget removes the entry of a pipe that is gone, unless it has a successor.
func forget(client redis.UniversalClient) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared[client].Value() == nil {
		delete(shared, client)
	}
}
