package proxy

import (
	"errors"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// chargeRules charges a request under its rules. If a rule denies the request, the charges under the other rules are
// refunded as far as possible.
func (f *forwarding) chargeRules(r *http.Request, rules []*rule) error {
	if len(rules) == 0 {
		return nil
	}
	rules, err := f.applyLists(r, rules)
	if err != nil {
		return err
	}
	if len(rules) > 1 && f.g.store.client != nil {
		f.takeTogether(rules)
	}
	var least ratelimit.Result // a denial, or the result for X-RateLimit headers with the fewest units remaining
	var of *rule               // the rule that least belongs to
	for i, rule := range rules {
		res, err := rule.policy.Take(f.req.Context())
		switch {
		case err != nil && errors.Is(err, ratelimit.ErrNoKey) && rule.Missing == config.Skip:
			continue
		case err != nil:
			rule.counters.countError(err)
			f.refund(rules, i)
			return err
		}
		f.countTake(rule, res)
		if res.Source == ratelimit.FromShadow || res.Allowed && rule.ChargeIf != nil { // it may be refunded
			continue
		}
		if !res.Allowed || rule.sendsX && (of == nil || res.Remaining < least.Remaining) {
			least, of = res, rule
		}
		if !res.Allowed {
			f.refund(rules, i)
			break
		}
	}
	if of == nil {
		return nil
	}
	if of.sendsX {
		f.status, f.hasStatus = newStatus(least, of.resultLimit(r, &f.g.clients, least), f.p.now()), true
	}
	err = least.Err()
	if err != nil {
		f.writeStatus()
	}
	return err
}

// applyLists returns the rules that limit the client, because their allow lists don't contain it. It returns an error
// if a deny list contains the client.
func (f *forwarding) applyLists(r *http.Request, rules []*rule) ([]*rule, error) {
	if !slices.ContainsFunc(rules, func(rule *rule) bool { return rule.allow != nil || rule.deny != nil }) {
		return rules, nil
	}
	address := f.g.clients.address(r.Context(), r)
	var out []*rule
	for _, rule := range rules {
		switch {
		case rule.deny.denies(r, address):
			f.p.metrics.counter("listed_total", "rule", rule.Name, "list", "denied").Inc()
			return nil, server.Errorf(http.StatusForbidden, "This client is not allowed.")
		case rule.allow.allows(r, address):
			f.p.metrics.counter("listed_total", "rule", rule.Name, "list", "allowed").Inc()
		default:
			out = append(out, rule)
		}
	}
	return out, nil
}

// takeTogether charges a request under all rules in one round trip to Redis. It waits for all charges, so that they
// can be refunded. The policies keep the results and errors.
func (f *forwarding) takeTogether(rules []*rule) {
	for _, rule := range rules[1:] {
		_ = rule.policy.Start(f.req.Context())
	}
	for _, rule := range rules {
		_, _ = rule.policy.Take(f.req.Context())
	}
}

// refund refunds the charges under all rules except one. An error of a refund is ignored: the rule has then counted
// one request too many.
func (f *forwarding) refund(rules []*rule, except int) {
	for i, rule := range rules {
		if i != except {
			_, _ = rule.policy.Refund(f.req.Context())
		}
	}
}

// countTake updates the metrics with the result of a take.
func (f *forwarding) countTake(rule *rule, res ratelimit.Result) {
	m := rule.counters
	if res.Allowed {
		m.allowed.Inc()
	} else {
		m.denied.Inc()
	}
	if res.Source == ratelimit.FromShadow {
		return
	}
	if res.Allowed && f.p.denials.size() == 0 {
		return
	}
	subject, _ := rule.policy.Subject(f.req.Context()) // no error, since the take has used it
	if res.Allowed {
		f.p.denials.reset(subject)
	} else {
		f.p.metrics.observeDenials(m, f.p.denials.increment(subject, res.ResetAfter, f.p.now()))
	}
}
