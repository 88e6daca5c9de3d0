package params_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
)

// request is what a server does before it calls a handler.
func request(r *http.Request) context.Context {
	reg := reqctx.NewRegistry(reqctx.Options{})
	params.Provide(reg, params.Options{MaxBody: 64 << 10})
	c := reqctx.New(r.Context(), reg)
	c.SetRequest(r)
	return c
}

func Example() {
	ctx := request(httptest.NewRequest("GET", "/search?q=go&tag=a&tag=b", nil))

	p, err := params.From(ctx)
	if err != nil {
		panic(err)
	}
	q, _ := p.String("q")
	page, _ := p.IntOr("page", 1)
	tags, _ := p.Strings("tag")
	fmt.Println(q, page, tags)

	_, err = p.Int("q")
	fmt.Println(errors.Is(err, params.ErrMalformed), err)
	_, err = p.Int("size")
	fmt.Println(errors.Is(err, params.ErrMissing), err)
	// Output:
	// go 1 [a b]
	// true params: query parameter "q" must be a whole number
	// true params: parameter "size" is missing
}

func ExampleJSON() {
	type login struct {
		User string `json:"user"`
	}
	for _, body := range []string{`{"user":"ada"}`, `{"user":"ada","user":"root"}`, `{"user":1}`} {
		r := httptest.NewRequest("POST", "/login", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		v, err := params.JSON[login](request(r))
		fmt.Println(v.User, err)
	}
	// Output:
	// ada <nil>
	//  params: json parameter "user" is given twice
	//  params: json parameter "user" must be a string, not a number
}
