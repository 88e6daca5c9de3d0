package inspect

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// Inspector records the requests of the servers that it observes, and is the [http.Handler] of the page. Make it with
// [New]. It is safe for concurrent use.
type Inspector struct {
	opts  Options
	shown map[string]bool // the properties of Options.Values

	mu         sync.Mutex // guards the fields below; never held while user code runs
	since      time.Time
	window     window
	store      store
	properties map[string]*propertyStats
	quotas     map[quota]*quotaStats
	servers    []*server.Server
}

// New returns an Inspector. It returns an error if an option is out of range.
func New(o Options) (*Inspector, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	in := &Inspector{
		opts: o, shown: map[string]bool{}, since: time.Now(),
		properties: map[string]*propertyStats{}, quotas: map[quota]*quotaStats{},
		store: store{maxBytes: o.MaxBytes, routes: map[string]*route{}, byID: map[uint64]*record{}},
	}
	for _, name := range o.Values {
		in.shown[name] = true
	}
	return in, nil
}

// Token returns the bearer token for the page's data.
func (in *Inspector) Token() string { return in.opts.Token }

// named is the state of a property and the property's name.
type named struct {
	name string
	info reqctx.Info
}

// RequestEnd implements [server.Observer].
func (in *Inspector) RequestEnd(ctx context.Context, info server.RequestInfo) {
	c := reqctx.From(ctx)
	var propBuf [16]named
	props, limited := propBuf[:0], false
	for name, p := range c.Props() {
		props = append(props, named{name, p})
		limited = limited || p.State == reqctx.Resolved && strings.HasPrefix(name, "ratelimit.")
	}
	var decisionBuf [2]ratelimit.Decision
	decisions := decisionBuf[:0]
	if limited {
		for d := range ratelimit.Decisions(c) {
			decisions = append(decisions, d)
		}
	}
	o := outcomeOf(&info, decisions)
	o.Slow = info.Took >= in.opts.Slow
	r, record := in.count(&info, o, props)
	if !record {
		return
	}
	rec := in.newRecord(c, &info, r, o, props, decisions)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.store.add(r.ringFor(o, info.Took), rec)
}

// Decided adds a decision to the statistics. A server calls it for its policies. For others, such as those of a
// [ratelimit.Limiter], pass it to [ratelimit.Observe].
func (in *Inspector) Decided(_ context.Context, e ratelimit.Event) {
	if e.Err != nil || e.Op.Kind != ratelimit.Take && (e.Op.Kind != ratelimit.Add || e.Op.Rule.Limit() > 0) { // takes of a meter are adds
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if e.Result.Source == ratelimit.FromFailover {
		in.window.secondAt(e.Began.Add(e.Took)).Failovers++
	}
	statsFor(in.quotas, quota{e.Policy, e.Op.Rule.Name()}).add(&e)
}

// outcomeOf reports whether a request has failed or was denied.
func outcomeOf(info *server.RequestInfo, decisions []ratelimit.Decision) (o outcome) {
	if info.Status >= 500 || info.CutOff || info.Err != nil && info.Status < 200 {
		o.Failed = true
	} else if info.Err != nil {
		var p *lazy.PanicError
		o.Failed = errors.As(info.Err, &p)
	}
	o.Denied = info.Status == http.StatusTooManyRequests
	for i := range decisions {
		o.Denied = o.Denied || !decisions[i].Result.Allowed
	}
	return o
}

// count adds a request to the statistics. It returns the route and whether to record the request.
func (in *Inspector) count(info *server.RequestInfo, o outcome, props []named) (r *route, record bool) {
	c := counts{Requests: 1}
	for i := range props {
		called, failed := storeCallCounts(&props[i])
		c.StoreCalls, c.StoreErrors = c.StoreCalls+called, c.StoreErrors+failed
	}
	ended := info.Began.Add(info.Took)

	in.mu.Lock()
	defer in.mu.Unlock()
	in.addServer(info.Server)
	s := in.window.secondAt(ended)
	r = in.store.route(info.Pattern)
	r.Requests++
	if o.Failed {
		c.Failed = 1
		r.Failed++
	}
	if o.Denied {
		c.Denied = 1
		r.Denied++
	}
	s.add(c)
	s.took.add(info.Took)
	for i := range props {
		info := &props[i].info
		statsFor(in.properties, props[i].name).add(info)
		if info.By != "" {
			statsFor(in.properties, info.By).addRead(info.Took)
		}
	}
	in.store.bytes += r.addUses(props)
	most := in.opts.PerSecond
	if o.Failed || o.Denied {
		most = max(most, ringSize)
	}
	record = r.ringFor(o, info.Took).sample(ended, most) || o.Slow
	return r, record
}

// storeCallCounts returns the number of calls of the store of sessions or counters by a property's resolution, 0 or
// 1, and how many have failed.
func storeCallCounts(n *named) (called, failed uint32) {
	if n.info.State != reqctx.Resolved && n.info.State != reqctx.Failed {
		return 0, 0
	}
	limit := strings.HasPrefix(n.name, "ratelimit.") && !strings.HasSuffix(n.name, ".key")
	if n.name != "session" && !limit {
		return 0, 0
	}
	var se *session.Error
	if err := n.info.Err; err != nil && (errors.Is(err, ratelimit.ErrStore) || errors.As(err, &se)) {
		failed = 1
	}
	return 1, failed
}
