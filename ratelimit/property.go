package ratelimit

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// propertyKeys are the properties of a policy: the handle, and what takes time, so that
// it is shared and measured. Only the policy's [Limit] reaches the latter.
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

func makeKeys(name string) *propertyKeys {
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

func findKeys(name string) *propertyKeys {
	keysMu.RLock()
	defer keysMu.RUnlock()
	return keysByName[name]
}

// Provide registers the policies, with their counters in store. Each is the property
// "ratelimit.<name>", the first of them also "ratelimit"; their values are *[Limit]. Observers and
// measurements also see the private properties "ratelimit.<name>.take", the charge of the request, and
// "ratelimit.<name>.count".
//
// It panics if the registry or the store is nil, on what [Check] refuses, and, like
// reqctx.Provide, if a property of one of the names exists. Limits cannot be preset in tests:
// there, provide a memory store.
func Provide(reg *reqctx.Registry, store Store, policies ...Policy) {
	switch {
	case reg == nil:
		panic("ratelimit: Provide: registry is nil")
	case option.IsNil(store):
		panic("ratelimit: Provide: store is nil")
	}
	if err := Check(policies...); err != nil {
		panic(err)
	}
	reqctx.ProvideMemo(reg, refunds, refundOnce)
	for i, p := range policies {
		var unnamed *reqctx.Key[*Limit]
		if i == 0 {
			unnamed = &first
		}
		newBoundPolicy(p, store).provide(reg, unnamed)
	}
}

// Check returns what is wrong with policies that are provided together: none, two of one name, or
// a wrong field or rule of one. The error names the policy and the field.
func Check(policies ...Policy) error {
	if len(policies) == 0 {
		return errors.New("ratelimit: no policy")
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
	return nil
}
