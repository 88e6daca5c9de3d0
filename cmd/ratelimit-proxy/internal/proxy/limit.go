package proxy

import (
	"errors"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// chargeRules charges a request by its rules. All of them have to allow it; if one doesn't, the
// others are refunded as far as they can be.
func (x *exchange) chargeRules(r *http.Request, rules []*rule) error {
	if len(rules) == 0 {
		return nil
	}
	rules, err := x.applyLists(r, rules)
	if err != nil {
		return err
	}
	if len(rules) > 1 && x.g.store.client != nil {
		x.takeTogether(rules)
	}
	var least ratelimit.Result // with the least remaining
	var of *rule
	for i, rule := range rules {
		res, err := rule.policy.Take(x.req.Context())
		switch {
		case err != nil && errors.Is(err, ratelimit.ErrNoKey) && rule.Missing == config.Skip:
			continue
		case err != nil:
			rule.counters.countError(err)
			x.refund(rules, i)
			return err
		}
		x.countTake(rule, res)
		if res.Source == ratelimit.FromShadow {
			continue
		}
		if of == nil || !res.Allowed || res.Remaining < least.Remaining {
			least, of = res, rule
		}
		if !res.Allowed {
			x.refund(rules, i)
			break
		}
	}
	if of == nil {
		return nil
	}
	if *x.g.config.Headers.Legacy {
		x.status, x.hasStatus = newStatus(least, of.resultLimit(r, &x.g.clients, least), x.p.now()), true
	}
	err = least.Err()
	if err != nil {
		x.writeStatus()
	}
	return err
}

// applyLists returns the rules without those that allow the client, and an error if one denies
// it.
func (x *exchange) applyLists(r *http.Request, rules []*rule) ([]*rule, error) {
	if !slices.ContainsFunc(rules, func(rule *rule) bool { return rule.allow != nil || rule.deny != nil }) {
		return rules, nil
	}
	address := x.g.clients.address(r.Context(), r)
	var out []*rule
	for _, rule := range rules {
		switch {
		case rule.deny.denies(r, address):
			x.p.metrics.counter("listed_total", "rule", rule.Name, "list", "denied").Inc()
			return nil, server.Errorf(http.StatusForbidden, "This client is not allowed.")
		case rule.allow.allows(r, address):
			x.p.metrics.counter("listed_total", "rule", rule.Name, "list", "allowed").Inc()
		default:
			out = append(out, rule)
		}
	}
	return out, nil
}

// takeTogether charges by all rules in one round trip to Redis, and waits for all of them, so that
// they can be refunded. The limits keep the results and the errors.
func (x *exchange) takeTogether(rules []*rule) {
	for _, rule := range rules[1:] {
		_ = rule.policy.Start(x.req.Context())
	}
	for _, rule := range rules {
		_, _ = rule.policy.Take(x.req.Context())
	}
}

// refund gives back what all rules but one have charged. A refund that fails leaves a request
// too many in the count, and doesn't change the response.
func (x *exchange) refund(rules []*rule, except int) {
	for i, rule := range rules {
		if i != except {
			_, _ = rule.policy.Refund(x.req.Context())
		}
	}
}

// countTake updates the metrics of a take.
func (x *exchange) countTake(rule *rule, res ratelimit.Result) {
	m := rule.counters
	if res.Allowed {
		m.allowed.Inc()
	} else {
		m.denied.Inc()
	}
	if res.Source == ratelimit.FromFailover || res.Source == ratelimit.FromShadow { // which are counted elsewhere
		return
	}
	if res.Allowed && x.p.denials.size() == 0 {
		return
	}
	subject, _ := rule.policy.Subject(x.req.Context()) // known since the take
	if res.Allowed {
		x.p.denials.reset(subject)
	} else {
		x.p.metrics.observeDenials(m, x.p.denials.increment(subject, res.ResetAfter, x.p.now()))
	}
}
