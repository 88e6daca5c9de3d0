package redisstore

import (
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// braces keeps a subject's own braces from ending the hash tag: one that begins with
// "}" would make it empty, and so put the subject's counters into different slots.
var braces = strings.NewReplacer("%", "%25", "}", "%7D")

// key returns the name of the counter of r on a subject. Two rules have the same one if,
// and only if, they share a counter: the limit and the expiry are not in it.
func (s *Store) key(subject string, r ratelimit.Rule) string {
	var b strings.Builder
	b.Grow(len(s.prefix) + len(subject) + 64)
	b.WriteString(s.prefix)
	b.WriteByte('{')
	_, _ = braces.WriteString(&b, subject) // a Builder does not fail
	b.WriteString("}:")
	b.WriteString(r.Algorithm())
	b.WriteByte(':')
	if r.Name() != "" {
		b.WriteString(r.Name())
		b.WriteByte(':')
	}
	b.WriteString(r.Per().String())
	b.WriteByte('/')
	b.WriteString(r.Interval().String())
	b.WriteByte('/')
	b.WriteString(r.Span().String())
	return b.String()
}
