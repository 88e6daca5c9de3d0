package ratelimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// requests makes requests with the properties of a registry.
type requests struct {
	*testing.T
	reg      *reqctx.Registry
	policies []*ratelimit.Policy
	store    *spy
	hand     *hand
}

// spy is a store that counts its calls and returns err if it is not nil.
type spy struct {
	ratelimit.Store
	calls int
	keys  []string
	err   error
}

func (s *spy) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	s.calls++
	s.keys = append(s.keys, ops[0].Key)
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Do(ctx, ops)
}

func (s *spy) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

func provide(t *testing.T, policies ...*ratelimit.Policy) requests {
	t.Helper()
	h := newHand()
	s := &spy{Store: newStore(t, memstore.Options{Clock: h.clock})}
	reg := reqctx.NewRegistry(reqctx.Options{})
	if len(policies) > 0 {
		ratelimit.Provide(reg, s, policies...)
	}
	return requests{t, reg, policies, s, h}
}

// serve runs a request with the handler and returns the header of the response.
func (q requests) serve(handler func(c *reqctx.Host)) http.Header {
	q.Helper()
	c, h := reqctx.New(q.Context(), q.reg), http.Header{}
	c.SetRequest(httptest.NewRequest("GET", "/", nil).WithContext(c))
	handler(c)
	require.NoError(q, c.Commit(http.StatusOK, h))
	require.NoError(q, c.Finish())
	return h
}

// take sends a request to a handler that takes from the named policies. It returns the last result and the header.
func (q requests) take(names ...string) (res ratelimit.Result, header http.Header) {
	q.Helper()
	header = q.serve(func(c *reqctx.Host) {
		for _, name := range names {
			var err error
			res, err = q.policy(name).Take(c)
			require.NoError(q, err)
		}
	})
	return res, header
}

// policy returns the policy that has the name.
func (q requests) policy(name string) *ratelimit.Policy {
	q.Helper()
	i := slices.IndexFunc(q.policies, func(p *ratelimit.Policy) bool { return p.Name == name })
	require.NotEqual(q, -1, i, name)
	return q.policies[i]
}

// like returns a new policy that has the fields of p, and calls change with it.
func like(p *ratelimit.Policy, change func(*ratelimit.Policy)) *ratelimit.Policy {
	out := &ratelimit.Policy{Name: p.Name, Rules: p.Rules, RulesFor: p.RulesFor, Key: p.Key, Fallback: p.Fallback, Cost: p.Cost}
	change(out)
	return out
}

func ipPolicy(name string, limit int64) *ratelimit.Policy {
	return &ratelimit.Policy{Name: name, Rules: []ratelimit.Rule{coarse(limit, time.Minute)}, Key: ratelimit.ByIP()}
}

func ipPolicies(names ...string) (all []*ratelimit.Policy) {
	for _, name := range names {
		all = append(all, ipPolicy(name, 5))
	}
	return all
}

func TestProvideRefuses(t *testing.T) {
	r := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1})
	named := ratelimit.PerMinute(1).WithName("x")
	for want, p := range map[string][]*ratelimit.Policy{
		"no policy":                         {},
		"policy 1 is nil":                   {ipPolicy("a", 1), nil},
		`Policy.Name is ""`:                 {{Rules: []ratelimit.Rule{r}, Key: ratelimit.ByIP()}},
		`Policy.Name is "a.take"`:           {{Name: "a.take", Rules: []ratelimit.Rule{r}, Key: ratelimit.ByIP()}},
		`policy "a": Rules is empty`:        {{Name: "a", Key: ratelimit.ByIP()}},
		`policy "a": Key is nil`:            {{Name: "a", Rules: []ratelimit.Rule{r}}},
		`Rules[0]: Rule is the zero Rule`:   {{Name: "a", Rules: []ratelimit.Rule{{}}, Key: ratelimit.ByIP()}},
		`policy "a": Unit is "x y"`:         {{Name: "a", Rules: []ratelimit.Rule{r}, Key: ratelimit.ByIP(), Unit: "x y"}},
		`Rules[1] has the same name`:        {{Name: "a", Rules: []ratelimit.Rule{named, named}, Key: ratelimit.ByIP()}},
		`two policies have the name "same"`: {ipPolicy("same", 1), ipPolicy("same", 2)},
	} {
		reg := reqctx.NewRegistry(reqctx.Options{})
		err := ratelimit.Check(p...)
		require.ErrorContains(t, err, want)
		require.PanicsWithError(t, err.Error(), func() { ratelimit.Provide(reg, newStore(t, memstore.Options{}), p...) })
		c := reqctx.New(t.Context(), reg)
		_, err = ratelimit.From(c)
		require.ErrorIs(t, err, reqctx.ErrNoProperty, "nothing is registered: %s", want)
	}
	require.PanicsWithValue(t, "ratelimit: Provide: registry is nil", func() { ratelimit.Provide(nil, newStore(t, memstore.Options{}), ipPolicy("a", 1)) })
	require.PanicsWithValue(t, "ratelimit: Provide: store is nil", func() { ratelimit.Provide(reqctx.NewRegistry(reqctx.Options{}), nil, ipPolicy("a", 1)) })
}

// TestAnErrorOfAKeyIsNotTheMissingPolicy checks that the error names the policy that the key function has not found.
func TestAnErrorOfAKeyIsNotTheMissingPolicy(t *testing.T) {
	p := ipPolicy("ip", 1)
	p.Key = func(ctx context.Context, _ *http.Request) (string, error) {
		return "", ipPolicy("other", 1).Require(ctx)
	}
	provide(t, p).serve(func(c *reqctx.Host) {
		require.ErrorContains(t, p.Require(c), `ratelimit: policy "ip": the request has no policy "other": give`)
	})
}

func TestMissingKey(t *testing.T) {
	p := ipPolicy("api", 1)
	p.Key = ratelimit.ByHeader("X-Api-Key")
	lenient := like(p, func(p *ratelimit.Policy) { p.Name, p.Fallback = "lenient", ratelimit.ByIP() })
	empty := ipPolicy("empty", 1)
	empty.Key = func(context.Context, *http.Request) (string, error) { return "", nil }
	q := provide(t, p, lenient, empty)
	for _, p := range []*ratelimit.Policy{p, empty} {
		h := q.serve(func(c *reqctx.Host) {
			_, err := p.Take(c)
			require.ErrorIs(t, err, ratelimit.ErrNoKey)
			require.Equal(t, http.StatusBadRequest, status(t, err))
		})
		require.Empty(t, h)
	}
	require.Zero(t, q.store.calls)
	q.take("lenient")
	require.Equal(t, []string{"lenient~192.0.2.1"}, q.store.keys, "not the key of a header that reads like an address")
}

func status(t *testing.T, err error) int {
	t.Helper()
	var p interface{ Problem() (int, map[string]any) }
	require.ErrorAs(t, err, &p)
	s, _ := p.Problem()
	return s
}

func TestCost(t *testing.T) {
	p := ipPolicy("ip", 5)
	cost, failure := int64(3), error(nil)
	p.Cost = func(context.Context, *http.Request) (int64, error) { return cost, failure }
	q := provide(t, p)
	res, _ := q.take("ip")
	require.EqualValues(t, 2, res.Remaining)
	try := func() (err error) {
		q.serve(func(c *reqctx.Host) {
			l, _ := ratelimit.From(c)
			_, err = l.Take()
		})
		return err
	}
	cost = 6
	require.ErrorIs(t, try(), ratelimit.ErrTooLarge)
	require.Equal(t, http.StatusBadRequest, status(t, try()))
	cost = 0
	require.ErrorContains(t, try(), `policy "ip": Cost returned 0`)
	failure = errors.New("no idea")
	require.ErrorIs(t, try(), failure)
	cost, failure = 1, nil
	res, _ = q.take("ip")
	require.EqualValues(t, 1, res.Remaining, "errors charge nothing")
}

// TestOpErrorIsNoStoreFailure checks that an error about an op does not become ErrStore.
func TestOpErrorIsNoStoreFailure(t *testing.T) {
	for _, refused := range []error{
		ratelimit.ErrOp, ratelimit.ErrTooLarge, ratelimit.ErrInterval, ratelimit.ErrNoCount,
		ratelimit.ErrNoLimit, ratelimit.ErrOverflow, ratelimit.ErrNoRoom,
	} {
		q := provide(t, ipPolicy("ip", 5))
		q.store.err = refused
		q.serve(func(c *reqctx.Host) {
			l := must(ratelimit.From(c))
			_, err := l.Take()
			require.ErrorIs(t, err, refused)
			require.NotErrorIs(t, err, ratelimit.ErrStore)
		})
	}
}

// TestNoRequestNoKey checks that a context without a request and a peer gets ErrNoKey, even if Key returns a key.
func TestNoRequestNoKey(t *testing.T) {
	p := ipPolicy("ip", 5)
	p.Key = fixedKey("constant", nil)
	q := provide(t, p)
	c := reqctx.New(t.Context(), q.reg)
	l := must(ratelimit.From(c))
	_, err := l.Take()
	require.ErrorIs(t, err, ratelimit.ErrNoKey)
	require.Zero(t, q.store.calls)
	require.NoError(t, c.Finish())
}
