package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/lazyreq/lazyreq/ratelimit/internal/addrkey"
)

// subject returns the key in the store of what the request is counted by. The name
// contains neither ":" nor "~", so that no two policies have a subject in common, nor a
// key and a fallback key.
func (p *Policy) subject(ctx context.Context, r *http.Request) (string, error) {
	keys := &keyContext{Context: ctx}
	key, err := p.Key(keys, r)
	by := ":"
	if p.Fallback != nil && (errors.Is(err, ErrNoKey) || err == nil && key == "") {
		key, err = p.Fallback(keys, r)
		by = "~"
	}
	switch {
	case err != nil:
		return "", p.wrapError(err)
	case key == "":
		return "", p.wrapError(ErrNoKey)
	}
	return p.Name + by + keys.storeForm(key), nil
}

// keyContext is what a policy's key functions get. It knows the key by address that one of
// them has made: to a caller who chooses a name, that is the form of another key.
type keyContext struct {
	context.Context
	mu      sync.Mutex
	address string // the last one, "" if there is none
}

type keyContextKey struct{}

// Value makes k findable.
func (k *keyContext) Value(key any) any {
	if _, ok := key.(keyContextKey); ok {
		return k
	}
	return k.Context.Value(key)
}

// noteAddressKey notes that a key function has made a key of an address.
func noteAddressKey(ctx context.Context, key string) {
	if k, ok := ctx.Value(keyContextKey{}).(*keyContext); ok {
		k.mu.Lock()
		k.address = key
		k.mu.Unlock()
	}
}

const (
	// maxSubjectLen is the length of the longest key that is kept as it is.
	maxSubjectLen = 128
	longKey       = "long-" // begins the hash of a long key
	escapedKey    = "="     // begins a key that would otherwise read like something else
)

// storeForm returns the form of a key in the store, of which no two keys have the same: the hash
// of a long one, the key of an address, any other key.
func (k *keyContext) storeForm(key string) string {
	k.mu.Lock()
	address := k.address
	k.mu.Unlock()
	switch {
	case len(key) > maxSubjectLen:
		return longKey + hashParts(key)
	case strings.HasPrefix(key, longKey), strings.HasPrefix(key, escapedKey),
		key != address && addrkey.Parse(key).IsValid():
		return escapedKey + key
	}
	return key
}
