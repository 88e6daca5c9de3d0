package ratelimit

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"sync"
	"weak"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// description is what rules point to. It is immutable, and equal rules point to the same one.
type description struct {
	layout   layout.Layout
	err      string // what is wrong with the rule: a field and, after a space, the reason
	ownBurst bool   // the burst was chosen, and doesn't follow the limit
}

var (
	// descriptions holds the description of each rule that something refers to.
	descriptions   = map[description]weak.Pointer[description]{}
	descriptionsMu sync.Mutex

	zeroRule = description{err: "Rule is the zero Rule"}
)

// intern returns the rule of a description.
func intern(d description) Rule {
	descriptionsMu.Lock()
	defer descriptionsMu.Unlock()
	if known := descriptions[d].Value(); known != nil {
		return Rule{known}
	}
	added := new(d)
	descriptions[d] = weak.Make(added)
	runtime.AddCleanup(added, forget, d)
	return Rule{added}
}

// forget removes a description that nothing refers to, unless it was added again.
func forget(d description) {
	descriptionsMu.Lock()
	defer descriptionsMu.Unlock()
	if descriptions[d].Value() == nil {
		delete(descriptions, d)
	}
}

// description returns the rule's description, which must not be changed.
func (r Rule) description() *description {
	if r.d == nil {
		return &zeroRule
	}
	return r.d
}

func invalidRule(err string) Rule { return intern(description{err: err}) }

// rule returns the rule of a description that was changed, or one with an error: its own, err, or
// that of its burst.
func (d description) rule(err string) Rule {
	switch {
	case d.layout.Algorithm == 0:
	case err != "":
		return invalidRule(err)
	case d.layout.Algorithm == layout.GCRA:
		if d.err = burstError("Rule.Burst", d.layout.Burst, d.layout.Per); d.err != "" {
			d.layout.Algorithm = 0
			break
		}
		d.layout.Expiry = ceilDiv(d.layout.Burst*d.layout.Per, d.layout.Limit)
	}
	return intern(d)
}

// counter is what distinguishes the counters of a key.
type counter struct {
	algorithm           layout.Algorithm
	stream              bool
	per, interval, span int64
	named               bool
	name                string
}

func (d *description) counter() counter {
	l := &d.layout
	return counter{l.Algorithm, l.Stream, l.Per, l.Interval, l.Span, l.Named, l.Name}
}

// setID sets the id, a hash of the counter.
func (d *description) setID() {
	if d.layout.Algorithm == 0 {
		return
	}
	h, c := fnv.New64a(), d.counter()
	_, _ = fmt.Fprintf(h, "%d %t %d %d %d %t %s", c.algorithm, c.stream, c.per, c.interval, c.span, c.named, c.name)
	d.layout.ID = h.Sum64()
}
