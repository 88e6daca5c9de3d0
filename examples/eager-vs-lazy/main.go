// Eager-vs-lazy is an application in two variants. In one, middleware loads the session, parses the body and
// takes from the rate limit for every request. In the other, handlers read lazy properties. The program sends
// both variants the same requests and prints what each costs.
//
//	go run ./examples/eager-vs-lazy
//	go run ./examples/eager-vs-lazy -latency 0
//
// A call of a store takes at least as long as -latency, as if Redis were on another machine. With 0,
// the time is the server's own. The chain is around all routes; a chain for each route would cost
// less, up to where a handler needs its session only sometimes.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lazyreq/lazyreq/server"
)

func main() {
	latency := flag.Duration("latency", time.Millisecond, "how long a call of a store takes")
	flag.Parse()
	if err := run(100, *latency, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run measures both variants and prints a table.
func run(rounds int, latency time.Duration, out io.Writer) error {
	eager, err := newVariant("eager", latency, loadSession, parseParams, takeLimit)
	if err != nil {
		return err
	}
	lazy, err := newVariant("lazy", latency)
	if err != nil {
		return err
	}
	for range rounds { // the variants take turns, so that other programs on the machine slow down both
		eager.sendMix()
		lazy.sendMix()
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\ttime per request\tstore calls per request\tallocations per request")
	for _, v := range []*variant{eager, lazy} {
		slices.Sort(v.took)
		median := v.took[rounds/2] / mixed
		calls, allocs := float64(v.stores.calls.Load()-v.loginCalls)/mixed, float64(v.allocs)/mixed
		fmt.Fprintf(table, "%s\t%v\t%.1f\t%.0f\n", v.name, median.Round(time.Microsecond), calls/float64(rounds), allocs/float64(rounds))
	}
	return table.Flush()
}

// variant is the application, with or without middleware, and its costs.
type variant struct {
	name       string
	srv        *server.Server
	stores     *stores
	session    *http.Cookie
	loginCalls int64           // calls of the stores during the login
	took       []time.Duration // duration of each mix
	allocs     uint64
}

// newVariant returns a variant in which a user is logged in.
func newVariant(name string, latency time.Duration, middleware ...func(http.Handler) http.Handler) (*variant, error) {
	st, err := newStores(latency)
	if err != nil {
		return nil, err
	}
	srv, err := newServer(st)
	if err != nil {
		return nil, err
	}
	srv.Use(middleware...)
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		return nil, fmt.Errorf("%s: the login has failed: %s", name, w.Body)
	}
	return &variant{name: name, srv: srv, stores: st, session: cookies[0], loginCalls: st.calls.Load()}, nil
}

// sendMix sends the requests of the mix directly to the handler. Without a network, only the server is measured.
func (v *variant) sendMix() {
	requests := mix(v.session)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for _, r := range requests {
		v.srv.ServeHTTP(&discard{http.Header{}}, r)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	v.took = append(v.took, took)
	v.allocs += after.Mallocs - before.Mallocs
}

// mixed is the number of requests in the mix.
const mixed = 10

// mix returns ten requests of one user. Six of them are for pages that are the same for all users.
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

// discard is a ResponseWriter that drops the response.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
