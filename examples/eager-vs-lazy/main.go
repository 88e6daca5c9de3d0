// Eager-vs-lazy is one application twice: with a chain of middleware that loads the session, parses
// the body and takes from the rate limit for each request, and with lazy properties, of which a
// handler reads those that it needs. It sends both the same requests and prints what each costs.
//
//	go run ./examples/eager-vs-lazy
//	go run ./examples/eager-vs-lazy -latency 0
//
// A call of a store takes at least as long as -latency, as if Redis were on another machine. With 0,
// the time is the server's own. The chain is around all routes; a chain for each route would cost
// less, up to where a handler needs its session only sometimes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lazyreq/lazyreq/server"
)

func main() {
	latency := flag.Duration("latency", time.Millisecond, "how long a call of a store takes")
	rounds := flag.Int("rounds", 100, "how often the ten requests of the mix are sent")
	flag.Parse()
	if err := run(*rounds, *latency, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run measures both and prints a table.
func run(rounds int, latency time.Duration, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\ttime per request\tstore calls per request\tallocations per request")
	for _, name := range []string{"eager", "lazy"} {
		st, err := newStores(latency)
		if err != nil {
			return err
		}
		srv, err := newServer(st)
		if err != nil {
			return err
		}
		if name == "eager" {
			srv.Use(loadSession, parseParams, takeLimit)
		}
		c, err := measure(srv, st, rounds)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%v\t%.1f\t%.0f\n", name, c.time.Round(time.Microsecond), c.calls, c.allocations)
	}
	return table.Flush()
}

// costs are averages over all requests.
type costs struct {
	time               time.Duration
	calls, allocations float64
}

// measure logs in and sends the mix, as often as rounds, without a network, so that nothing but the
// server is measured.
func measure(srv *server.Server, st *stores, rounds int) (costs, error) {
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		return costs{}, errors.New("the login has failed")
	}
	requests := make([]*http.Request, 0, rounds*10)
	for range rounds {
		requests = append(requests, mix(cookies[0])...)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	calls, began := st.calls.Load(), time.Now()
	for _, r := range requests {
		w := discard{http.Header{}}
		srv.ServeHTTP(&w, r)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	n := len(requests)
	return costs{
		time:        took / time.Duration(n),
		calls:       float64(st.calls.Load()-calls) / float64(n),
		allocations: float64(after.Mallocs-before.Mallocs) / float64(n),
	}, nil
}

// mix returns ten requests of one user, six of them for pages that are the same for all users.
func mix(session *http.Cookie) (requests []*http.Request) {
	for _, to := range []string{
		"/articles/1", "/articles/2", "/me", "/articles/3", "/search?q=go",
		"/articles/4", "/articles/5", "/me", "/articles/6", "/comments",
	} {
		r := httptest.NewRequest("GET", to, nil)
		if to == "/comments" {
			r = httptest.NewRequest("POST", to, strings.NewReader("text=good"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.AddCookie(session)
		requests = append(requests, r)
	}
	return requests
}

// discard is a ResponseWriter without a client.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
