package inspect

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

// maxNames bounds the properties and the quotas that are counted.
const maxNames = 512

// propertyStats count what requests did with one property.
type propertyStats struct {
	name     string
	requests uint64 // that had the property
	needed   uint64 // that read or set it
	resolved uint64
	failed   uint64
	own      time.Duration // of all resolutions, without the properties that they read
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
		p.resolved++
	case reqctx.Resolved:
		p.resolved++
	}
	p.needed++
	if info.State == reqctx.Resolved || info.State == reqctx.Failed {
		p.own += info.Took
		p.took.add(info.Took)
	}
}

// addRead is called for a property that a resolution of p has read.
func (p *propertyStats) addRead(took time.Duration) {
	if p != nil {
		p.own -= took
	}
}

// timeSaved returns how much longer all requests together would have taken if each had resolved
// the property, at the mean of its own durations. So the sum over all properties counts nothing
// twice.
func (p *propertyStats) timeSaved() time.Duration {
	if p.resolved == 0 {
		return 0
	}
	mean := float64(p.own) / float64(p.resolved)
	return time.Duration(max(mean, 0) * float64(p.requests-p.needed))
}

// quotaStats count the decisions by one rule of a policy.
type quotaStats struct {
	rule         string
	limit        int64
	of           ratelimit.Rule // which rule describes
	takes        uint64
	denied       uint64 // by the enforced rule
	shadowTakes  uint64
	shadowDenied uint64 // would have been denied
	failovers    uint64
}

func (q *quotaStats) add(d *ratelimit.Decision) {
	if q.of != d.Rule {
		q.of, q.rule, q.limit = d.Rule, ruleText(d.Rule), d.Rule.Limit()
	}
	switch {
	case d.Result.Source == ratelimit.FromShadow:
		q.shadowTakes++
		if d.Result.Violated {
			q.shadowDenied++
		}
		return
	case d.Result.Source == ratelimit.FromFailover:
		q.failovers++
	}
	q.takes++
	if d.Result.Violated && !d.Result.Allowed {
		q.denied++
	}
}

// ruleText describes a rule, such as "30 per minute, buckets".
func ruleText(r ratelimit.Rule) string {
	per := r.Per().String()
	switch r.Per() {
	case time.Second:
		per = "second"
	case time.Minute:
		per = "minute"
	case time.Hour:
		per = "hour"
	case 24 * time.Hour:
		per = "day"
	}
	if r.Limit() == 0 {
		return "no limit, " + r.Algorithm()
	}
	return fmt.Sprintf("%d per %s, %s", r.Limit(), per, r.Algorithm())
}
