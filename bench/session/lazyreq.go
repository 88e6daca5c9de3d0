package session

import (
	"io"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

var (
	user   = session.NewField[string]("user")
	basket = session.NewField[string]("basket")
	visits = session.NewCounter("visits")
)

func openLazyreq(addr string) (http.Handler, func() error, error) {
	client := rig.NewClient(addr, poolSize)
	store, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.New(server.Options{SessionStore: store})
	if err != nil {
		return nil, nil, err
	}
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		if err := user.Set(req.Context(), req.URL.RawQuery); err != nil {
			return err
		}
		return basket.Set(req.Context(), goods)
	})
	srv.HandleFunc("GET /light", func(w http.ResponseWriter, _ *server.Request) error {
		_, err := io.WriteString(w, "light")
		return err
	})
	srv.HandleFunc("GET /me", func(w http.ResponseWriter, req *server.Request) error {
		name, err := user.Get(req.Context())
		if err == nil {
			_, err = io.WriteString(w, name)
		}
		return err
	})
	srv.HandleFunc("POST /visit", func(_ http.ResponseWriter, req *server.Request) error {
		return visits.Add(req.Context(), 1)
	})
	srv.HandleFunc("POST /put", put)
	srv.HandleFunc("GET /get", func(w http.ResponseWriter, req *server.Request) error {
		value, err := session.NewField[string](req.URL.RawQuery).Get(req.Context())
		if err == nil {
			_, err = io.WriteString(w, value)
		}
		return err
	})
	srv.HandleFunc("POST /logout", func(_ http.ResponseWriter, req *server.Request) error {
		s, err := session.From(req.Context())
		if err != nil {
			return err
		}
		return s.Destroy()
	})
	return srv, client.Close, nil
}

// put loads the session first, as the others do: with the name of the visitor.
func put(_ http.ResponseWriter, req *server.Request) error {
	if _, err := user.Get(req.Context()); err != nil {
		return err
	}
	if err := session.NewField[string](req.URL.RawQuery).Set(req.Context(), goods); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, req.Body)
	return err
}
