// Echo is an application on the echo router. Its handlers read lazy properties: a limit, whose denials are
// answered with a 429, and path values as parameters.
//
//	cd examples/echo && go run .
//
//	for i in 1 2 3; do curl -i http://127.0.0.1:8080/books/7; done
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

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
	e := echo.New()
	e.HTTPErrorHandler = writeError
	e.Use(pathValues)
	e.GET("/books/:id", book, echo.WrapMiddleware(server.Requiring(Books)))
	return srv.Wrap(e), nil
}

// pathValues makes the router's path values available to package params.
func pathValues(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		for i, name := range c.ParamNames() {
			c.Request().SetPathValue(name, c.ParamValues()[i])
		}
		return next(c)
	}
}

// writeError answers the error of a handler. Echo's own errors become problem responses, too.
func writeError(err error, c echo.Context) {
	var own *echo.HTTPError
	if errors.As(err, &own) {
		err = server.Errorf(own.Code, "%v", own.Message)
	}
	server.WriteError(c.Response(), c.Request(), err)
}

func book(c echo.Context) error {
	p, err := params.Of(c.Request())
	if err != nil {
		return err
	}
	id, err := p.Path().Int("id")
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]int{"id": id})
}
