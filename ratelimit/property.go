package ratelimit

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lazyreq/lazyreq/reqctx"
)

// propertyKeys are the properties of a policy: the handle, and what takes time, so that
// it is shared, measured and can be waited for by name.
type propertyKeys struct {
	limit reqctx.Key[*Limit]  // ratelimit.NAME
	take  reqctx.Key[*charge] // ratelimit.NAME.take: the one charge of the request
	count reqctx.Key[int64]   // ratelimit.NAME.count: over the first rule's Per
}

var (
	// What From returns without a name: the first policy that was registered, or else the
	// nearest middleware's. No policy can have the second's name.
	first   = reqctx.NewKey[*Limit]("ratelimit")
	nearest = reqctx.NewKey[*Limit]("ratelimit.*.middleware")

	// Property keys live as long as the process, so policies of one name in several
	// registries share theirs.
	keysByName = map[string]*propertyKeys{}
	keysMu     sync.RWMutex
)

func keysFor(name string) *propertyKeys {
	keysMu.Lock()
	defer keysMu.Unlock()
	k := keysByName[name]
	if k == nil {
		full := "ratelimit." + name
		k = &propertyKeys{
			limit: reqctx.NewKey[*Limit](full),
			take:  reqctx.NewKey[*charge](full + ".take"),
			count: reqctx.NewKey[int64](full + ".count"),
		}
		keysByName[name] = k
	}
	return k
}

func keysOf(name string) *propertyKeys {
	keysMu.RLock()
	defer keysMu.RUnlock()
	return keysByName[name]
}

// Provide registers the policies, with their counters in store. Each is the property
// "ratelimit.<name>", the first of them also "ratelimit"; their values are *[Limit].
// "ratelimit.<name>.take" is the charge of the request. An error names the policy and
// the field that is wrong; then nothing was registered.
//
// Call it once for a registry: like reqctx.Provide, it panics if a property of one of
// the names is there.
func Provide(reg *reqctx.Registry, store Store, policies ...Policy) error {
	switch {
	case reg == nil:
		return errors.New("ratelimit: Provide: registry is nil")
	case store == nil:
		return errors.New("ratelimit: Provide: store is nil")
	case len(policies) == 0:
		return errors.New("ratelimit: Provide: no policy")
	}
	seen := map[string]bool{}
	for _, p := range policies {
		if err := p.check(); err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("ratelimit: two policies have the name %q", p.Name)
		}
		seen[p.Name] = true
	}
	reqctx.ProvideMemo(reg, refunds, refund)
	for i, p := range policies {
		var unnamed *reqctx.Key[*Limit]
		if i == 0 {
			unnamed = &first
		}
		newBoundPolicy(p, store).provide(reg, unnamed)
	}
	return nil
}
