package session

import (
	"io"
	"net/http"

	"github.com/boj/redistore"
	"github.com/gorilla/sessions"
)

// openGorilla asks for the session in the handlers that need it, as its documentation
// shows: it has no middleware.
func openGorilla(addr string) (http.Handler, func() error, error) {
	store, err := redistore.NewRediStore(poolSize, "tcp", addr, "", "", []byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		return nil, nil, err
	}
	with := func(use func(w http.ResponseWriter, r *http.Request, s *sessions.Session) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s, err := store.Get(r, "session")
			if err == nil {
				err = use(w, r, s)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", with(func(w http.ResponseWriter, r *http.Request, s *sessions.Session) error {
		s.Values["user"], s.Values["basket"] = r.URL.RawQuery, goods
		return s.Save(r, w)
	}))
	mux.HandleFunc("GET /light", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "light") })
	mux.HandleFunc("GET /me", with(func(w http.ResponseWriter, _ *http.Request, s *sessions.Session) error {
		name, _ := s.Values["user"].(string)
		_, err := io.WriteString(w, name)
		return err
	}))
	mux.HandleFunc("POST /visit", with(func(w http.ResponseWriter, r *http.Request, s *sessions.Session) error {
		n, _ := s.Values["visits"].(int)
		s.Values["visits"] = n + 1
		return s.Save(r, w)
	}))
	mux.HandleFunc("POST /put", with(func(w http.ResponseWriter, r *http.Request, s *sessions.Session) error {
		s.Values[r.URL.RawQuery] = goods
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return err
		}
		return s.Save(r, w)
	}))
	mux.HandleFunc("GET /get", with(func(w http.ResponseWriter, r *http.Request, s *sessions.Session) error {
		value, _ := s.Values[r.URL.RawQuery].(string)
		_, err := io.WriteString(w, value)
		return err
	}))
	mux.HandleFunc("POST /logout", with(func(w http.ResponseWriter, r *http.Request, s *sessions.Session) error {
		s.Options.MaxAge = -1
		return s.Save(r, w)
	}))
	return mux, store.Close, nil
}
