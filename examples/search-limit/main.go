// Search-limit is a search page that each address may use five times a minute. If a browser searches more
// often, it gets a page with a countdown. A program gets a problem in JSON. Both responses are a 429 with
// Retry-After.
//
//	go run ./examples/search-limit
//
// Open http://127.0.0.1:8080 and search six times, or:
//
//	for i in 1 2 3 4 5 6; do curl -i 'http://127.0.0.1:8080/search?q=go'; done
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{
		RateLimits:   []*ratelimit.Policy{ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(5))},
		WriteProblem: writeProblem,
	})
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *server.Request) error {
		return writePage(w, http.StatusOK, page{}) // the empty page is not limited, since it does not use the limit
	})
	srv.HandleFunc("GET /search", search)
	return srv, nil
}

func search(w http.ResponseWriter, req *server.Request) error {
	q, err := req.Params().Query().String("q")
	if err != nil {
		return err
	}
	if err := req.RateLimit().Require(); err != nil { // called after the check of the words, so that a search without words costs nothing
		return err
	}
	return writePage(w, http.StatusOK, page{Query: q, Found: findTitles(q)})
}

// writeProblem shows a denial on the search page. A redirect to another page would lose the status 429 and the words
// of the search. Other errors, and all errors for clients that are not browsers, are problem+json.
func writeProblem(w http.ResponseWriter, r *http.Request, p *server.Problem) {
	var denied *ratelimit.DeniedError
	if !errors.As(p, &denied) || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return
	}
	if err := writePage(w, p.Status, page{Query: r.URL.Query().Get("q"), Wait: denied.RetrySeconds()}); err != nil {
		panic(err)
	}
}

// page is the data of page.html.
type page struct {
	Query string
	Found []string
	Wait  int64 // seconds until the next search is allowed; 0 if this search was allowed
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// writePage executes the template before it writes the header, so that an error becomes a 500.
func writePage(w http.ResponseWriter, status int, p page) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := b.WriteTo(w)
	return err
}

// titles lists the titles that can be found.
var titles = []string{
	"A Tour of Go", "Effective Go", "Go Concurrency Patterns", "Go by Example", "How to Write Go Code",
	"Redis in Action", "The Go Memory Model", "The Go Programming Language Specification",
}

func findTitles(q string) (found []string) {
	for _, title := range titles {
		if strings.Contains(strings.ToLower(title), strings.ToLower(q)) {
			found = append(found, title)
		}
	}
	return found
}
