package server_test

import (
	"errors"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// All error responses of an API have the same shape.
func ExampleOptions_envelope() {
	srv, err := server.New(server.Options{
		WriteProblem: func(w http.ResponseWriter, _ *http.Request, p *server.Problem) {
			text := p.Detail
			if text == "" {
				text = p.Title
			}
			_ = server.WriteJSON(w, p.Status, map[string][]string{"errors": {text}})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /items/{id}", func(_ http.ResponseWriter, req *server.Request) error {
		id, err := req.Params().Path().Int("id")
		if err != nil {
			return err
		}
		return server.Errorf(http.StatusNotFound, "There is no item %d.", id)
	})
	show(srv, httptest.NewRequest("GET", "/items/7", nil))
	show(srv, httptest.NewRequest("GET", "/items/x", nil))
	show(srv, httptest.NewRequest("GET", "/elsewhere", nil))
	// Output:
	// 404 {"errors":["There is no item 7."]}
	// 400 {"errors":["path parameter \"id\" must be a whole number"]}
	// 404 {"errors":["Not Found"]}
}

// Errors are HTML pages, and a page that needs a login redirects to the login page. The session keeps
// the page to return to.
func ExampleOptions_pages() {
	errorPage := template.Must(template.New("error").Parse("<h1>{{.Title}}</h1><p>{{.Detail}}"))
	next := session.NewFlash[string]("next")
	srv, err := server.New(server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, // plain HTTP, for the example
		WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
			if p.Status == http.StatusUnauthorized && next.Set(r.Context(), r.URL.RequestURI()) == nil {
				http.Redirect(w, r, "/login", http.StatusSeeOther)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if err := errorPage.Execute(w, p); err != nil {
				panic(err) // logged, and answered with problem+json
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /orders", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := session.RequireUser(req)
		return err
	})
	srv.HandleFunc("POST /login", func(w http.ResponseWriter, req *server.Request) error {
		path, found, err := next.Take(req)
		if !found {
			path = "/"
		}
		if err := errors.Join(err, req.Session().Bind("ada")); err != nil {
			return err
		}
		http.Redirect(w, req.Request, path, http.StatusSeeOther)
		return nil
	})

	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, httptest.NewRequest("GET", "/orders?page=2", nil))
	fmt.Println(rec.Code, rec.Header().Get("Location"))
	login := httptest.NewRequest("POST", "/login", nil)
	login.AddCookie(rec.Result().Cookies()[0])
	rec = httptest.NewRecorder()
	srv.ServeHTTP(rec, login)
	fmt.Println(rec.Code, rec.Header().Get("Location"))
	show(srv, httptest.NewRequest("GET", "/elsewhere", nil))
	// Output:
	// 303 /login
	// 303 /orders?page=2
	// 404 <h1>Not Found</h1><p>
}
