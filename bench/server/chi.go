package server

import (
	"net"
	"net/http"
	"strconv"

	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/go-chi/chi/v5"
	"github.com/go-redis/redis_rate/v10"
)

// openChi opens a server with eager middleware on chi: scs with its go-redis store, and redis_rate.
func openChi(addr string) (http.Handler, error) {
	client := newRedis(addr)
	sessions := scs.New()
	sessions.Store = goredisstore.New(client)

	r := chi.NewRouter()
	r.Use(limitByIP(redis_rate.NewLimiter(client)), sessions.LoadAndSave)
	r.Post("/login", func(_ http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), userField, user)
	})
	r.Get("/light", func(w http.ResponseWriter, _ *http.Request) { _ = lightPage.write(w) })
	r.Get("/full", func(w http.ResponseWriter, r *http.Request) {
		_ = page{sessions.GetString(r.Context(), userField), r.URL.Query().Get("q")}.write(w)
	})
	return r, nil
}

// limitByIP returns the middleware that redis_rate's documentation shows.
func limitByIP(limiter *redis_rate.Limiter) func(http.Handler) http.Handler {
	limit := redis_rate.PerMinute(perMinute)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ip, _, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			res, err := limiter.Allow(r.Context(), ip, limit)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("RateLimit-Remaining", strconv.Itoa(res.Remaining))
			if res.Allowed == 0 {
				http.Error(w, "", http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
