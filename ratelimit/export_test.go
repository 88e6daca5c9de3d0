package ratelimit

import "github.com/lazyreq/lazyreq/ratelimit/internal/layout"

// What the external tests use.
var (
	AddMembers     = addMembers
	NewBoundPolicy = newBoundPolicy
)

func (p *boundPolicy) Same(other *boundPolicy) bool { return p.sameAs(other) }

// RuleWithID returns a rule as if its hash were id.
func RuleWithID(r Rule, id uint64) Rule {
	l := *r.layout
	l.ID = id
	return Rule{layout.Intern(l)}
}
