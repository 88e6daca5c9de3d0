package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/lazyreq/lazyreq/reqctx"
)

// passage is a request on its way through a middleware: the context that its handler
// gets, with the charge in it.
type passage struct {
	context.Context
	m  *middleware
	r  *http.Request // as it came to the middleware
	up *passage      // the middleware's further out

	// What the take came to, fixed before the handler runs.
	terms  *terms // nil if they could not be found
	charge *charge
	err    error // why there is no charge

	mu   sync.Mutex
	home *reqctx.Context // has the properties, once a handler has asked for them
	over bool            // the handler has returned
}

type passageKey struct{}

// Value makes p findable.
func (p *passage) Value(key any) any {
	if _, ok := key.(passageKey); ok {
		return p
	}
	return p.Context.Value(key)
}

func nearest(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage)
	return p
}

// passageOf returns the one that was charged by the same policy, or nil.
func passageOf(ctx context.Context, l *limited) *passage {
	p := nearest(ctx)
	for p != nil && !p.m.policy.same(l) {
		p = p.up
	}
	return p
}

// passageNamed returns the nearest of that name, or just the nearest.
func passageNamed(ctx context.Context, name []string) *passage {
	p := nearest(ctx)
	for p != nil && len(name) > 0 && p.m.policy.Name != name[0] {
		p = p.up
	}
	return p
}

// absent makes err, with which no property was found, one that speaks of middlewares, too:
// where there are some, or where nothing else could have brought the policy.
func absent(ctx context.Context, name []string, err error) error {
	p := nearest(ctx)
	if !errors.Is(err, reqctx.ErrNoRequest) && (p == nil || !errors.Is(err, reqctx.ErrNoProperty)) {
		return err
	}
	which, others := "", ""
	if len(name) > 0 {
		which = fmt.Sprintf(" of policy %q", name[0])
	}
	for sep := ", only of "; p != nil; p, sep = p.up, ", " {
		others += sep + strconv.Quote(p.m.policy.Name)
	}
	return fmt.Errorf("ratelimit: no middleware%s around this handler%s: %w", which, others, err)
}

// enter charges the request.
func (m *middleware) enter(r *http.Request) *passage {
	ctx := r.Context()
	p := &passage{Context: ctx, m: m, r: r, up: nearest(ctx)}
	if p.terms, p.err = m.policy.newTerms(ctx, r); p.err != nil {
		return p
	}
	if p.charge, p.err = p.terms.take(ctx, r); p.err == nil {
		p.charge.pass = p
	}
	return p
}

// limit returns the handler's view. Its properties are a request's of their own, beside
// the one of a server that there may be: that has others.
func (p *passage) limit() (*Limit, error) {
	p.mu.Lock()
	if p.home == nil {
		p.home = reqctx.New(p, p.m.reg)
		p.home.SetRequest(p.r)
		if p.over {
			_ = p.home.Finish()
		}
	}
	home := p.home
	p.mu.Unlock()
	return p.m.policy.handle.Get(home)
}

func (p *passage) end() {
	p.mu.Lock()
	home := p.home
	p.over = true
	p.mu.Unlock()
	if home != nil {
		_ = home.Finish() // it logs its errors
	}
}
