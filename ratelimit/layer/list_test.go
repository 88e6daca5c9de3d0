package layer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func networksOf(s ...string) (p []netip.Prefix) {
	for _, s := range s {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func TestListContains(t *testing.T) {
	l, _ := listsAround(t, ListsOptions{})
	for _, c := range []struct {
		key  string
		list List
		has  bool
	}{
		{"search:k", List{Keys: []string{"search:k"}}, true},
		{"search:k2", List{Keys: []string{"search:k"}}, false},
		{"k", List{Keys: []string{"search:k"}}, false},
		{"search:k", List{Prefixes: []string{"login:", "search:"}}, true},
		{"search:k", List{Prefixes: []string{"search:k"}}, true},
		{"search:", List{Prefixes: []string{"search:k"}}, false},
		{"search:10.1.2.3", List{Networks: networksOf("10.0.0.0/8")}, true},
		{"search:10.1.2.3", List{Networks: networksOf("192.168.0.0/16", "10.1.2.3/32")}, true},
		{"search:10.1.2.3", List{Networks: networksOf("10.1.2.4/32")}, false},
		{"search:11.1.2.3", List{Networks: networksOf("10.0.0.0/8")}, false},
		{"search~10.1.2.3", List{Networks: networksOf("10.99.0.0/8")}, true}, // the network has bits after its prefix, and the key is one of a Fallback
		{"10.1.2.3", List{Networks: networksOf("10.0.0.0/8")}, true},
		{"search:10.1.2.3", List{Networks: networksOf("::ffff:10.0.0.0/104")}, true},
		{"search:10.1.2.3", List{Networks: networksOf("::/0")}, false},
		{"search:10.1.2.3", List{Networks: networksOf("0.0.0.0/0")}, true},
		{"search:2001:db8:1:2::/64", List{Networks: networksOf("2001:db8::/32")}, true},
		{"search:2001:db8:1:2::/64", List{Networks: networksOf("2001:db8:1:2::/64")}, true},
		{"search:2001:db8:1:2::/64", List{Networks: networksOf("2001:db8:1:2::/128")}, false},
		{"search:2001:db8:1:2::1", List{Networks: networksOf("2001:db8:1:2::1/128")}, true},
		{"b2b:2001:db8::/64", List{Networks: networksOf("b2b::/16")}, false},
		{"b2b:2001:db8::/64", List{Networks: networksOf("2001:db8::/64")}, true},
		{"search:10.1.2", List{Networks: networksOf("0.0.0.0/0")}, false},
		{"search:10.1.2.3/33", List{Networks: networksOf("0.0.0.0/0")}, false},
		{"search:=10.1.2.3", List{Networks: networksOf("0.0.0.0/0")}, false},
		{"search:name", List{Networks: networksOf("0.0.0.0/0", "::/0")}, false},
		{"search:", List{Networks: networksOf("0.0.0.0/0", "::/0")}, false},
	} {
		require.NoError(t, l.Set(List{}, c.list))
		res, err := l.DoOne(t.Context(), take(gcra(1000), c.key, 1))
		require.NoError(t, err)
		require.Equal(t, c.has, res.Source == ratelimit.FromDenyList, fmt.Sprint(c.key, c.list))
	}
}

// TestNetworksOfAPolicy checks that networks match the keys of ByIP.
func TestNetworksOfAPolicy(t *testing.T) {
	l, _ := listsAround(t, ListsOptions{
		Allow: List{Networks: networksOf("10.0.0.0/8", "2001:db8::/32")},
		Deny:  List{Networks: networksOf("10.6.6.0/24")},
	})
	limited, err := ratelimit.Middleware(l, &ratelimit.Policy{Name: "ad", Rules: []ratelimit.Rule{gcra(1)}, Key: ratelimit.ByIP()}, ratelimit.MiddlewareOptions{})
	require.NoError(t, err)
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func(from string) *httptest.ResponseRecorder {
		rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		h.ServeHTTP(rec, r)
		return rec
	}
	for range 3 {
		for _, from := range []string{"10.1.2.3:1", "[::ffff:10.1.2.3]:1", "[2001:db8::1%eth0]:1", "[64:ff9b::10.1.2.3]:1"} {
			rec := ask(from)
			require.Equal(t, http.StatusOK, rec.Code, from)
			require.Equal(t, `"ad";r=1;t=0`, rec.Header().Get("RateLimit"))
		}
	}
	rec := ask("10.6.6.6:1")
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Equal(t, "3600", rec.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, ask("192.0.2.1:1").Code)
	require.Equal(t, http.StatusTooManyRequests, ask("192.0.2.1:1").Code)
}

// TestNamesMatchNoNetwork checks that a caller whose name reads like an address does not match the address's network.
func TestNamesMatchNoNetwork(t *testing.T) {
	l, _ := listsAround(t, ListsOptions{Allow: List{Networks: networksOf("0.0.0.0/0", "::/0")}})
	byName := func(_ context.Context, r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	for name, p := range map[string]*ratelimit.Policy{
		"name":     {Key: byName},
		"fallback": {Key: ratelimit.ByCookie("id"), Fallback: byName},
		"header":   {Key: ratelimit.ByHeader("X-User")},
		"first":    {Key: ratelimit.FirstOf(byName, ratelimit.ByIP())},
		"all":      {Key: ratelimit.ByAll(byName)},
	} {
		p.Name, p.Rules = name, []ratelimit.Rule{gcra(1)}
		limited, err := ratelimit.Middleware(l, p, ratelimit.MiddlewareOptions{})
		require.NoError(t, err)
		h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, user := range []string{"10.0.0.1", "2001:db8::1", "2001:db8::/64", "::ffff:10.0.0.1", "=10.0.0.1"} {
			for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
				rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
				r.Header.Set("X-User", user)
				h.ServeHTTP(rec, r)
				require.Equal(t, want, rec.Code, "%s: %s", name, user)
			}
		}
	}
}

func TestAddressFunction(t *testing.T) {
	l, _ := listsAround(t, ListsOptions{
		Deny:    List{Networks: networksOf("2001:db8::/32")},
		Address: func(key string) netip.Prefix { return netip.MustParsePrefix(key) },
	})
	res, err := l.DoOne(t.Context(), take(gcra(1), "2001:db8::/64", 1))
	require.NoError(t, err)
	require.Equal(t, ratelimit.FromDenyList, res.Source)
}
