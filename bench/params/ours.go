package params

import (
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

func lazyreqQuery() func(*reqctx.Host) (query, error) {
	return func(c *reqctx.Host) (query, error) {
		v, err := params.Bind[ourQuery](c)
		return query(v), err
	}
}

func lazyreqJSON() func(*reqctx.Host) (profile, error) {
	return func(c *reqctx.Host) (profile, error) { return params.Bind[profile](c) }
}

// withContext runs a binding in a request's context, which is made and ended as a server
// does. For the others it does nothing, but it costs them as much as us: what is compared
// is what a binding adds to a request.
func withContext[T any](bind func(*reqctx.Host) (T, error)) func(*http.Request) (T, error) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	params.Provide(reg, params.Options{})
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
