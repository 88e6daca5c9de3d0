// Gin is an application on the gin router. Its handlers read lazy properties: a limit, whose denials are
// answered with a 429, and path values as parameters.
//
//	cd examples/gin && go run .
//
//	for i in 1 2 3; do curl -i http://127.0.0.1:8080/books/7; done
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	h, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n\n  curl -i http://%[1]s/books/7\n", *addr)
	log.Fatal((&http.Server{Addr: *addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe())
}

// Books limits the requests for books.
var Books = ratelimit.NewPolicy("books", ratelimit.ByIP(), ratelimit.PerMinute(2))

func newHandler() (http.Handler, error) {
	srv, err := server.New(server.Options{RateLimits: []*ratelimit.Policy{Books}})
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.Use(pathValues)
	r.GET("/books/:id", requiring(Books), handle(showBook))
	return srv.Wrap(r), nil
}

// pathValues makes the router's path values available to package params.
func pathValues(c *gin.Context) {
	for _, p := range c.Params {
		c.Request.SetPathValue(p.Key, p.Value)
	}
}

// handle returns a gin handler that calls h and answers its error.
func handle(h func(c *gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			server.WriteError(c.Writer, c.Request, err)
			c.Abort()
		}
	}
}

// requiring returns a middleware that answers requests that do not meet the requirements.
func requiring(items ...server.Requirement) gin.HandlerFunc {
	return func(c *gin.Context) {
		met := false
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { met = true })
		server.Requiring(items...)(next).ServeHTTP(c.Writer, c.Request)
		if !met {
			c.Abort()
		}
	}
}

func showBook(c *gin.Context) error {
	p, err := params.Of(c.Request)
	if err != nil {
		return err
	}
	id, err := p.Path().Int("id")
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"id": id})
	return nil
}
