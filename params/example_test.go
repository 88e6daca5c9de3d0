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

// request prepares a context as a server does before it calls a handler.
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

func ExampleBind() {
	type search struct {
		Shelf int      `path:"shelf"`
		Words string   `query:"q" required:"true"`
		Size  int      `query:"size" default:"20"`
		Tags  []string `query:"tag"`
	}
	for _, query := range []string{"q=go&tag=a&tag=b", "size=many"} {
		r := httptest.NewRequest("GET", "/shelves/7?"+query, nil)
		r.SetPathValue("shelf", "7") // by the router
		v, err := params.Bind[search](request(r))
		fmt.Println(v, err)
	}
	// Output:
	// {7 go 20 [a b]} <nil>
	// {0  0 []} params: query parameter "q" is missing; query parameter "size" must be a whole number
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
