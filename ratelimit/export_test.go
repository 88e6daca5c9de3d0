package ratelimit

// What the external tests use.
var (
	AddMembers     = addMembers
	NewBoundPolicy = newBoundPolicy
)

func (p *boundPolicy) Same(other *boundPolicy) bool { return p.sameAs(other) }

// RuleWithID returns a rule as if its hash were id.
func RuleWithID(r Rule, id uint64) Rule {
	d := *r.d
	d.layout.ID = id
	return intern(d)
}

// KnownRules returns the number of descriptions that are kept.
func KnownRules() int {
	descriptionsMu.Lock()
	defer descriptionsMu.Unlock()
	return len(descriptions)
}
