// Tiers is an API whose limits depend on the customer's plan. The API key of a request identifies the
// customer and is verified first. A made-up key gets a 401 and no quota. Requests without a key share the
// smallest limit, by address.
//
//	go run ./examples/tiers
//
//	curl -i http://127.0.0.1:8080/report
//	curl -i -H 'X-Api-Key: key-of-ada' http://127.0.0.1:8080/report
//	curl -i -H 'X-Api-Key: key-of-grace' http://127.0.0.1:8080/report
//	curl -i -H 'X-Api-Key: made-up' http://127.0.0.1:8080/report
//	curl -i -H 'X-Api-Key: key-of-ada' http://127.0.0.1:8080/quota
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
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

type customer struct {
	ID      string
	Plan    string
	PerHour int64 // limit in the customer's contract; 0 means the limit of the plan
}

// customers is a stand-in for a database. It contains hashes of the API keys and not the keys.
var customers = map[[32]byte]*customer{
	sha256.Sum256([]byte("key-of-ada")):   {ID: "ada", Plan: "basic"},
	sha256.Sum256([]byte("key-of-grace")): {ID: "grace", Plan: "pro", PerHour: 5000},
}

// caller is the customer whose API key the request has. It is nil for a request without a key.
var caller = reqctx.NewKey[*customer]("caller")

func findCaller(ctx context.Context) (*customer, error) {
	key := reqctx.From(ctx).Request().Header.Get("X-Api-Key")
	if key == "" {
		return nil, nil
	}
	c, ok := customers[sha256.Sum256([]byte(key))]
	if !ok {
		return nil, server.Errorf(http.StatusUnauthorized, "This API key is not valid.")
	}
	return c, nil
}

// plans lists the rules of each plan. All plans have rules of the same kinds, so that a customer's counts stay when
// the customer changes the plan.
var plans = map[string][]ratelimit.Rule{
	"free":  {ratelimit.PerMinute(3), ratelimit.PerHour(20)},
	"basic": {ratelimit.PerMinute(10), ratelimit.PerHour(200)},
	"pro":   {ratelimit.PerMinute(100), ratelimit.PerHour(2000)},
}

// rulesFor returns the rules for a request. It reads the property caller, which is resolved once in a request.
func rulesFor(ctx context.Context, _ *http.Request) ([]ratelimit.Rule, error) {
	c, err := caller.Get(ctx)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return plans["free"], nil
	case c.PerHour > 0:
		minute, hour := plans[c.Plan][0], plans[c.Plan][1]
		return []ratelimit.Rule{minute, hour.WithLimit(c.PerHour)}, nil
	}
	return plans[c.Plan], nil
}

// api limits each customer with the rules of the customer's plan, and requests without an API key by their address.
var api = &ratelimit.Policy{
	Name: "api",
	Key: ratelimit.ByProperty(caller, func(c *customer) string {
		if c == nil {
			return "" // an empty key means that Fallback is used
		}
		return c.ID
	}),
	Fallback: ratelimit.ByIP(),
	RulesFor: rulesFor,
}

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{RateLimits: []*ratelimit.Policy{api}})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), caller, reqctx.Prop[*customer]{
		Resolve: findCaller,
		Vary:    []string{"X-Api-Key"}, // caches must not answer one customer with another's response
	})
	// The policy reads the caller first. So a request with an invalid API key gets the caller's error, a 401.
	srv.HandleFunc("GET /report", showReport, server.Require(api))
	srv.HandleFunc("GET /quota", showQuota)
	return srv, nil
}

func showReport(w http.ResponseWriter, _ *server.Request) error {
	return server.WriteJSON(w, http.StatusOK, map[string]int{"sales": 42})
}

// showQuota answers the remaining quota of each rule. Peek charges nothing.
func showQuota(w http.ResponseWriter, req *server.Request) error {
	quota, err := api.Peek(req)
	if err != nil {
		return err
	}
	left := []map[string]int64{}
	for _, r := range quota.Each() {
		left = append(left, map[string]int64{"limit": r.Limit, "remaining": r.Remaining})
	}
	return server.WriteJSON(w, http.StatusOK, left)
}
