package params

import (
	"context"
	"net/http"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
)

// ourQuery is a query with our tags: a field names one source.
type ourQuery struct {
	Q     string `query:"q"`
	Page  int    `query:"page"`
	Size  int    `query:"size"`
	Sort  string `query:"sort"`
	Exact bool   `query:"exact"`
}

func lazyreqQuery() func(*http.Request) (query, error) {
	bind := ours(params.Bind[ourQuery])
	return func(r *http.Request) (query, error) {
		v, err := bind(r)
		return query(v), err
	}
}

func lazyreqJSON() func(*http.Request) (profile, error) { return ours(params.Bind[profile]) }

// ours makes a request context for each binding, as a server does.
func ours[T any](bind func(context.Context, ...func(*T) error) (T, error)) func(*http.Request) (T, error) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	if err := params.Provide(reg, params.Options{}); err != nil {
		panic(err) // there is no option that could be wrong
	}
	return func(r *http.Request) (T, error) {
		c := reqctx.New(r.Context(), reg)
		c.SetRequest(r)
		v, err := bind(c)
		if finishErr := c.Finish(); err == nil {
			err = finishErr
		}
		return v, err
	}
}
