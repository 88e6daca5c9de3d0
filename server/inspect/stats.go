package inspect

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

// maxNames is the maximum number of properties and of quotas that are counted.
const maxNames = 512

// propertyStats counts the uses of one property.
type propertyStats struct {
	requests uint64 // requests that had the property
	needed   uint64 // requests that read or set it
	resolved uint64
	failed   uint64
	own      time.Duration // the sum of all resolutions, without the properties that they read
	took     histogram
}

// add counts one request.
func (p *propertyStats) add(info *reqctx.Info) {
	p.requests++
	switch info.State {
	case reqctx.Unused:
		return
	case reqctx.Failed:
		p.failed++
		fallthrough
	case reqctx.Resolved:
		p.resolved++
		p.own += info.Took
		p.took.add(info.Took)
	}
	p.needed++
}

// addRead subtracts the duration of another property that was read during a resolution of p.
func (p *propertyStats) addRead(took time.Duration) { p.own -= took }

// timeSaved returns how much longer all requests together would have taken if each had resolved the property. It uses
// the mean of the property's own durations, so the sum over all properties counts nothing twice.
func (p *propertyStats) timeSaved() time.Duration {
	if p.resolved == 0 {
		return 0
	}
	mean := float64(p.own) / float64(p.resolved)
	return time.Duration(max(mean, 0) * float64(p.requests-p.needed))
}

// quota names a rule of a policy.
type quota struct{ policy, rule string }

// String returns a name such as "search.60s".
func (q quota) String() string { return strings.TrimPrefix(q.policy+"."+q.rule, ".") }

// quotaStats counts the decisions of one rule of a policy.
type quotaStats struct {
	quotaSummary
	of ratelimit.Rule // the rule that Rule describes
}

func (q *quotaStats) add(e *ratelimit.Event) {
	if q.of != e.Op.Rule {
		q.of, q.Rule, q.Limit = e.Op.Rule, ruleText(e.Op.Rule), e.Op.Rule.Limit()
	}
	switch {
	case e.Result.Source == ratelimit.FromShadow:
		q.ShadowTakes++
		if e.Result.Violated {
			q.ShadowDenied++
		}
		return
	case e.Result.Source == ratelimit.FromFailover:
		q.Failovers++
	}
	q.Takes++
	if e.Result.Violated && !e.Result.Allowed {
		q.Denied++
	}
}

var periods = map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}

// ruleText returns a text such as "30 per minute, buckets".
func ruleText(r ratelimit.Rule) string {
	if r.Limit() == 0 {
		return "no limit, " + r.Algorithm()
	}
	per := r.Layout().PerText()
	if r.Layout().Period == 0 {
		per = cmp.Or(periods[r.Per()], per)
	}
	return fmt.Sprintf("%d per %s, %s", r.Limit(), per, r.Algorithm())
}

// statsFor returns the statistics of a name. If there are too many names, it returns new statistics that are not
// kept.
func statsFor[K comparable, T any](m map[K]*T, name K) *T {
	s := m[name]
	if s == nil {
		s = new(T)
		if len(m) < maxNames {
			m[name] = s
		}
	}
	return s
}
