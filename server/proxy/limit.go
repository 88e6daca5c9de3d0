package proxy

import (
	"errors"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// limit asks the rules whether a request may go on. All have to allow it; if one doesn't,
// the others get back what they have charged, as far as they can.
func (x *exchange) limit(r *http.Request, rules []*rule) error {
	if len(rules) == 0 {
		return nil
	}
	rules, err := x.listed(r, rules)
	if err != nil {
		return err
	}
	if len(rules) > 1 && x.g.store.client != nil {
		x.ask(rules)
	}
	var tightest ratelimit.Result
	var of *rule
	for i, rule := range rules {
		res, err := rule.of(x.req).Take()
		switch {
		case err != nil && errors.Is(err, ratelimit.ErrNoKey) && rule.Missing == skip:
			continue
		case err != nil:
			rule.counters.undecided(err)
			x.giveBack(rules, i)
			return err
		}
		x.count(rule, res)
		if res.Source == ratelimit.FromShadow {
			continue
		}
		if of == nil || !res.Allowed || res.Remaining < tightest.Remaining {
			tightest, of = res, rule
		}
		if !res.Allowed {
			x.giveBack(rules, i)
			break
		}
	}
	if of == nil {
		return nil
	}
	if x.g.seed {
		x.told, x.tells = tell(tightest, x.g.speaking(of, r, tightest), x.p.now()), true
	}
	err = tightest.Err()
	if err != nil && x.tells {
		x.told.write(x.w.Header())
	}
	return err
}

// listed leaves out the rules whose lists let the request pass, and refuses it if a list
// says so.
func (x *exchange) listed(r *http.Request, rules []*rule) ([]*rule, error) {
	if !slices.ContainsFunc(rules, func(rule *rule) bool { return rule.allow != nil || rule.deny != nil }) {
		return rules, nil
	}
	address := x.g.clients.address(r.Context(), r)
	var out []*rule
	for _, rule := range rules {
		switch {
		case rule.deny.mentions(r, rule.key, address):
			x.p.metrics.listed(rule.Name, "denied")
			return nil, server.Errorf(http.StatusForbidden, "This client is not served.")
		case rule.allow.has(r, rule.key, address):
			x.p.metrics.listed(rule.Name, "allowed")
		default:
			out = append(out, rule)
		}
	}
	return out, nil
}

// ask has all rules asked at one moment, which is one round trip to Redis; in memory they
// are asked one after the other. What comes of it the loop over the rules sees.
func (x *exchange) ask(rules []*rule) {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = "ratelimit." + rule.Name + ".take"
	}
	_ = x.req.Resolve(names...)
}

// giveBack refunds what all rules but one have charged. A refund that fails is a request
// more that counts, and no reason to answer otherwise.
func (x *exchange) giveBack(rules []*rule, but int) {
	for i, rule := range rules {
		if i != but {
			_, _ = rule.of(x.req).Refund()
		}
	}
}

// count keeps the statistics of a take.
func (x *exchange) count(rule *rule, res ratelimit.Result) {
	m := rule.counters
	if res.Allowed {
		m.allowed.Inc()
	} else {
		m.denied.Inc()
	}
	if res.Source == ratelimit.FromFailover || res.Source == ratelimit.FromShadow { // that tells by itself
		return
	}
	if res.Allowed && x.p.beyond.size() == 0 {
		return
	}
	subject, _ := rule.of(x.req).Subject() // the take has found it
	if res.Allowed {
		x.p.beyond.allow(subject)
	} else {
		m.wentBeyond(x.p.beyond.deny(subject, res.ResetAfter, x.p.now()))
	}
}
