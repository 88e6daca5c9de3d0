package session

import (
	"io"
	"net/http"
	"strings"

	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"

	"github.com/lazyreq/lazyreq/bench/rig"
)

// goods are what a visitor has in the session besides the name.
var goods = strings.Repeat("a good thing, ", 8)

// openSCS wraps all routes in LoadAndSave, as its documentation says. The idle timeout,
// which would cost a save in each request, is left off.
func openSCS(addr string) (http.Handler, func() error, error) {
	client := rig.NewClient(addr, poolSize)
	sessions := scs.New()
	sessions.Store = goredisstore.New(client)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(_ http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), "user", r.URL.RawQuery)
		sessions.Put(r.Context(), "basket", goods)
	})
	mux.HandleFunc("GET /light", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "light") })
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, sessions.GetString(r.Context(), "user"))
	})
	mux.HandleFunc("POST /visit", func(_ http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), "visits", sessions.GetInt(r.Context(), "visits")+1)
	})
	mux.HandleFunc("POST /put", func(_ http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), r.URL.RawQuery, goods)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	mux.HandleFunc("GET /get", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, sessions.GetString(r.Context(), r.URL.RawQuery))
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		if err := sessions.Destroy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return sessions.LoadAndSave(mux), client.Close, nil
}
