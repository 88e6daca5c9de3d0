package main

import (
	"fmt"
	"log"
	"net/http"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func main() {
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(srv.ListenAndServe("127.0.0.1:8080"))
}

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, // no HTTPS yet
	})
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("GET /hello", hello)
	srv.HandleFunc("POST /login", login)
	srv.HandleFunc("POST /logout", logout)
	srv.HandleFunc("GET /me", me)
	return srv, nil
}

func hello(w http.ResponseWriter, req *server.Request) error {
	name, err := req.Params().String("name")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Hello, %s!\n", name)
	return err
}
