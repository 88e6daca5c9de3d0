package redisstore

import (
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// braces keeps a subject's own braces from ending the hash tag: one that begins with
// "}" would make it empty, and so put the subject's counters into different slots.
var braces = strings.NewReplacer("%", "%25", "}", "%7D")

// counterKey returns the name of a counter on a subject.
func (s *Store) counterKey(subject string, counter string) string {
	if strings.ContainsAny(subject, "%}") {
		subject = braces.Replace(subject)
	}
	return s.prefix + "{" + subject + "}:" + counter
}

// counterName returns the name of the rule's counter among those of a subject. Two
// rules have the same one if, and only if, they share a counter: limits, the expiry and
// the block are not in it.
func counterName(r ratelimit.Rule) string {
	name := r.Algorithm() + ":"
	l := r.Layout()
	if l.Stream {
		name = "stream:"
	}
	if l.Named {
		name += l.Name + ":" + r.Per().String()
	} else {
		name += l.Name // made of the Per
	}
	if derived := l.Span == l.Per && l.Buckets == 20; r.Interval() > 0 && !derived {
		name += "/" + r.Interval().String()
		if l.Span != l.Per {
			name += "/" + r.Span().String()
		}
	}
	return name
}

// blockName returns the name of what the rule's block remembers, "" if it has none.
func blockName(r ratelimit.Rule) string {
	b := r.Block()
	if b.After == 0 {
		return ""
	}
	return counterName(r) + ":block:" + strconv.Itoa(b.After) + "/" + b.For.String()
}
