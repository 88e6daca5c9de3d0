package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

// visit sends a request with the cookies that an earlier response has set, and returns the new response.
func visit(h http.Handler, method, path string, before *http.Response) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	if before != nil {
		for _, c := range before.Cookies() {
			r.AddCookie(c)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// Bind is called at login. It binds the session to a user and gives it a new secret. Without a login, RequireUser
// returns an error whose response is a 401.
func ExampleSession_Bind() {
	srv, _ := server.New(server.Options{})
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		// … check the password, and then:
		return req.Session().Bind("42")
	})
	srv.HandleFunc("GET /me", func(_ http.ResponseWriter, req *server.Request) error {
		user, err := session.RequireUser(req)
		if err != nil {
			return err
		}
		fmt.Println("hello, user", user)
		return nil
	})
	fmt.Println(visit(srv, "GET", "/me", nil).StatusCode)
	login := visit(srv, "POST", "/login", nil)
	fmt.Println(visit(srv, "GET", "/me", login).StatusCode)
	// Output:
	// 401
	// hello, user 42
	// 200
}

// A field is a typed value. It is saved when the header goes out.
func ExampleField() {
	cart := session.NewField[[]string]("cart")
	srv, _ := server.New(server.Options{})
	srv.HandleFunc("POST /cart", func(_ http.ResponseWriter, req *server.Request) error {
		// Concurrent requests do not lose each other's items.
		return cart.Update(req, func(items []string) ([]string, error) {
			return append(items, req.URL.Query().Get("item")), nil
		})
	})
	srv.HandleFunc("GET /cart", func(_ http.ResponseWriter, req *server.Request) error {
		items, err := cart.Get(req)
		fmt.Println(items)
		return err
	})
	first := visit(srv, "POST", "/cart?item=tea", nil)
	visit(srv, "POST", "/cart?item=milk", first)
	visit(srv, "GET", "/cart", first)
	// Output: [tea milk]
}

// A manager can list and end sessions outside of a request, for example when an account is closed.
func ExampleManager() {
	store, _ := memstore.New(memstore.Options{})
	srv, _ := server.New(server.Options{SessionStore: store})
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Session().Bind("42")
	})
	visit(srv, "POST", "/login", nil)
	visit(srv, "POST", "/login", nil)

	m := srv.Sessions()
	n, err := m.RevokeAll(context.Background(), "42")
	fmt.Println(n, err)
	infos, err := m.List(context.Background(), "42")
	fmt.Println(len(infos), err)
	// Output:
	// 2 <nil>
	// 0 <nil>
}

// A flash can be read only once. A counter counts the additions of all requests.
func ExampleFlash() {
	notice := session.NewFlash[string]("notice")
	saves := session.NewCounter("saves")
	srv, _ := server.New(server.Options{})
	srv.HandleFunc("POST /save", func(_ http.ResponseWriter, req *server.Request) error {
		return errors.Join(notice.Set(req, "Saved."), saves.Add(req, 1))
	})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		text, ok, err := notice.Take(req)
		n, err2 := saves.Get(req)
		fmt.Printf("%q %v %d\n", text, ok, n)
		return errors.Join(err, err2)
	})
	saved := visit(srv, "POST", "/save", nil)
	visit(srv, "GET", "/", saved)
	visit(srv, "GET", "/", saved)
	// Output:
	// "Saved." true 1
	// "" false 1
}
