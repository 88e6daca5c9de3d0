package main

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// visits is a counter in the session. If two tabs open a page at the same time, both visits count.
var visits = session.NewCounter("visits")

// User is a property of this application: the name of the user who is logged in. If nobody is logged in, it is an
// error that is answered with a 401.
var User = reqctx.NewKey[string]("user")

// Search limits the searches of each client.
var Search = ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(5))

// newServer returns the server with its handlers. Observers are optional.
func newServer(st stores, observers ...server.Observer) (*server.Server, error) {
	srv, err := server.New(server.Options{
		Observers:      observers,
		Callers:        len(observers) > 0,
		ServerTiming:   true,
		RateLimits:     []*ratelimit.Policy{Search},
		RateLimitStore: st.counters,
		Session: session.Options{
			Cookie: session.Cookie{Insecure: true}, // this example uses plain HTTP
		},
		SessionStore: st.sessions,
	})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), User, reqctx.Prop[string]{Resolve: session.RequireUser})
	srv.HandleFunc("GET /{$}", index)
	srv.HandleFunc("GET /fast", fast)
	srv.HandleFunc("GET /search", search)
	srv.HandleFunc("GET /slow-down", slowDown)
	srv.HandleFunc("GET /count", countSearches)
	srv.HandleFunc("POST /login", login)
	srv.HandleFunc("GET /me", showUser, server.Require(User))
	srv.HandleFunc("POST /logout", logout)
	return srv, nil
}

// fast reads no property, so it costs as much as a handler of a server without properties.
func fast(w http.ResponseWriter, _ *server.Request) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// search is a limited handler. If search, or a function that it calls, takes again in the same request, Take returns
// the same result and charges nothing.
func search(w http.ResponseWriter, req *server.Request) error {
	q, err := req.Params().Query().String("q")
	if err != nil {
		return err
	}
	limit, err := Search.Take(req)
	if err != nil {
		return err
	}
	if !limit.Allowed && strings.Contains(req.Header.Get("Accept"), "text/html") {
		http.Redirect(w, req.Request, "/slow-down", http.StatusSeeOther)
		return nil
	}
	if err := limit.Err(); err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, map[string]any{"q": q, "results": findMatches(q)})
}

// slowDown answers how long to wait for the next search. Peek charges nothing.
func slowDown(w http.ResponseWriter, req *server.Request) error {
	limit, err := Search.Peek(req)
	if err != nil {
		return err
	}
	return writePage(w, slowDownPage, limit.RetrySeconds())
}

// countSearches answers the number of searches in the last 20 seconds. It charges nothing.
func countSearches(w http.ResponseWriter, req *server.Request) error {
	n, err := Search.CountIn(req, 20*time.Second)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, map[string]any{"count": n})
}

// login accepts a form or JSON.
func login(w http.ResponseWriter, req *server.Request) error {
	name, err := req.Params().Content().StringOr("user", "")
	if err != nil {
		return err
	}
	if name = strings.TrimSpace(name); name == "" {
		return server.Errorf(http.StatusBadRequest, "The user must not be empty.")
	}
	if err := req.Session().Bind(name); err != nil { // Bind gives the session a new id, so that nobody can use the old one
		if errors.Is(err, session.ErrTooLarge) {
			return server.Errorf(http.StatusBadRequest, "The user is too long.")
		}
		return err
	}
	http.Redirect(w, req.Request, "/me", http.StatusSeeOther)
	return nil
}

func showUser(w http.ResponseWriter, req *server.Request) error {
	name, err := User.Get(req)
	if err != nil {
		return err
	}
	if err := visits.Add(req, 1); err != nil {
		return err
	}
	n, err := visits.Get(req)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, map[string]any{"user": name, "visits": n})
}

func logout(w http.ResponseWriter, req *server.Request) error {
	if err := req.Session().Destroy(); err != nil {
		return err
	}
	http.Redirect(w, req.Request, "/", http.StatusSeeOther)
	return nil
}
