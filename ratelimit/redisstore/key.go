package redisstore

import (
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// braces keeps a subject's own braces from ending the hash tag: one that begins with
// "}" would make it empty, and so put the subject's counters into different slots.
var braces = strings.NewReplacer("%", "%25", "}", "%7D")

// key returns the name of a counter on a subject.
func (s *Store) key(subject string, counter string) string {
	if strings.ContainsAny(subject, "%}") {
		subject = braces.Replace(subject)
	}
	return s.prefix + "{" + subject + "}:" + counter
}

// counterName returns the name of the rule's counter among those of a subject. Two
// rules have the same one if, and only if, they share a counter: the limit and the
// expiry are not in it.
func counterName(r ratelimit.Rule) string {
	name := r.Algorithm() + ":"
	if r.Name() != "" {
		name += r.Name() + ":"
	}
	return name + r.Per().String() + "/" + r.Interval().String() + "/" + r.Span().String()
}
