// Cors is an API with sessions for pages of another origin: api.x.com for app.x.com. Two settings allow this.
// A library sends the CORS headers that browsers need. The server's cross-origin protection, which refuses
// POSTs from pages of other origins, lists the origin as trusted.
//
//	cd examples/cors && go run . -app http://localhost:3000
//
//	curl -i -X POST -H 'Origin: http://localhost:3000' http://127.0.0.1:8080/visits
//	curl -i -X POST -H 'Origin: http://evil.example' http://127.0.0.1:8080/visits
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/rs/cors"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	app := flag.String("app", "http://localhost:3000", "`origin` of the pages that may use the API")
	flag.Parse()
	srv, err := newServer(*app)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s for pages of %s\n", *addr, *app)
	log.Fatal(srv.ListenAndServe(*addr))
}

var visits = session.NewCounter("visits")

func newServer(app string) (*server.Server, error) {
	trusted := http.NewCrossOriginProtection()
	if err := trusted.AddTrustedOrigin(app); err != nil {
		return nil, err
	}
	srv, err := server.New(server.Options{
		CrossOrigin: trusted,
		// SameSite=Lax, the default, works here, because app.x.com and api.x.com are the same site.
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, // this example uses plain HTTP
	})
	if err != nil {
		return nil, err
	}
	srv.Use(cors.New(cors.Options{
		AllowedOrigins:   []string{app},
		AllowedMethods:   []string{"GET", "POST", "DELETE"},
		AllowedHeaders:   []string{"Content-Type"},
		ExposedHeaders:   []string{"RateLimit", "RateLimit-Policy", "Retry-After"},
		AllowCredentials: true, // allow the session's cookie
	}).Handler)
	srv.HandleFunc("POST /visits", func(w http.ResponseWriter, req *server.Request) error {
		if err := visits.Add(req, 1); err != nil {
			return err
		}
		n, err := visits.Get(req)
		if err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, map[string]int64{"visits": n})
	})
	return srv, nil
}
