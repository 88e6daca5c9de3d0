package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/inspect"
)

// The page is at an address of its own, and its URL contains the token.
func Example() {
	in, err := inspect.New(inspect.Options{})
	if err != nil {
		panic(err)
	}
	srv, err := server.New(server.Options{Observers: []server.Observer{in}})
	if err != nil {
		panic(err)
	}
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		_, err := fmt.Fprintln(w, "hello")
		return err
	})
	page, err := inspect.Listen(context.Background(), "127.0.0.1:0", in)
	if err != nil {
		panic(err)
	}
	defer page.Close()
	at, err := url.Parse(page.URL)
	if err != nil {
		panic(err)
	}
	fmt.Println(at.Hostname(), len(at.Fragment) > 16)
	// Output: 127.0.0.1 true
}
