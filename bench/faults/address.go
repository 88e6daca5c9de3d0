package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// limiting is middleware that lets a client through once in a minute.
type limiting func(next http.Handler) http.Handler

var middlewares = []struct {
	name string
	make func() (limiting, error)
}{
	{ours + "ByIP", func() (limiting, error) {
		store, err := memstore.New(memstore.Options{})
		if err != nil {
			return nil, err
		}
		policy := ratelimit.NewPolicy("address", ratelimit.ByIP(), ratelimit.PerMinute(1))
		return ratelimit.Middleware(store, policy, ratelimit.MiddlewareOptions{})
	}},
	{"ulule", func() (limiting, error) {
		l := ulule.New(ululestore.NewStore(), ulule.Rate{Limit: 1, Period: time.Minute})
		return stdlib.NewMiddleware(l).Handler, nil
	}},
	{"tollbooth", func() (limiting, error) {
		l := tollbooth.NewLimiter(1.0/60, nil)
		return func(next http.Handler) http.Handler { return tollbooth.LimitHandler(l, next) }, nil
	}},
	{"httprate", limitByClientIP(httprate.CanonicalizeIP)},
	{"chi", limitByClientIP(func(ip string) string { return ip })},
}

// limitByClientIP makes a limit of httprate, which counts by a key for the address that chi's middleware finds.
func limitByClientIP(key func(ip string) string) func() (limiting, error) {
	return func() (limiting, error) {
		limit := httprate.LimitBy(1, time.Minute, func(r *http.Request) (string, error) {
			return key(middleware.GetClientIP(r.Context())), nil
		})
		return func(next http.Handler) http.Handler { return middleware.ClientIPFromRemoteAddr(limit(next)) }, nil
	}
}

// addressPrograms returns a program for each middleware. admitted sends a request from each address to a new
// middleware, and returns the number of requests that are not limited.
func addressPrograms(check func(admitted func(addrs ...string) int) (seen string, n int)) []program {
	var out []program
	for _, m := range middlewares {
		out = append(out, program{m.name, func(context.Context, string) (seen string, n int, err error) {
			seen, n = check(func(addrs ...string) (admitted int) {
				limit, err2 := m.make()
				if err2 == nil {
					admitted, err2 = limit.countAdmitted(addrs)
				}
				err = errors.Join(err, err2)
				return admitted
			})
			return seen, n, err
		}})
	}
	return out
}

func (l limiting) countAdmitted(addrs []string) (n int, err error) {
	h := l(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n++ }))
	for _, addr := range addrs {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = net.JoinHostPort(addr, "1234")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if n == 0 || w.Code != http.StatusOK && w.Code != http.StatusTooManyRequests {
			return 0, fmt.Errorf("request from %s: status %d: %s", addr, w.Code, w.Body)
		}
	}
	return n, nil
}

// checkMapped checks whether an IPv4 address and its IPv4-mapped IPv6 address are the same client, and whether two
// mapped addresses are two clients.
func checkMapped(admitted func(addrs ...string) int) (string, int) {
	n := admitted("192.0.2.1", "::ffff:192.0.2.1")
	if admitted("::ffff:192.0.2.1", "::ffff:192.0.2.2") < 2 {
		return "all are one client", n
	}
	return yes(n > 1), n
}

// checkPrefix checks whether a client can change its address within its /64.
func checkPrefix(admitted func(addrs ...string) int) (string, int) {
	n := admitted("2001:db8::1", "2001:db8::2", "2001:db8::3")
	return yes(n > 1), n
}
