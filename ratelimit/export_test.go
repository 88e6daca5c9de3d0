package ratelimit

// What the external tests use.
var (
	AddMembers     = addMembers
	NewBoundPolicy = newBoundPolicy
)

func (p *boundPolicy) Same(other *boundPolicy) bool { return p.sameAs(other) }
