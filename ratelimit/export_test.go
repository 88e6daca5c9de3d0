package ratelimit

import "github.com/lazyreq/lazyreq/ratelimit/internal/layout"

// AddMembers is for the external tests.
var AddMembers = addMembers

// RuleWithID returns a rule as if its hash were id.
func RuleWithID(r Rule, id uint64) Rule {
	l := *r.layout
	l.ID = id
	return Rule{layout.Intern(l)}
}
