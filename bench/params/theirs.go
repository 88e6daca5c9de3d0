package params

import (
	"encoding/json"
	"io"
	"net/http/httptest"

	"github.com/gin-gonic/gin/binding"
	"github.com/go-playground/form/v4"
	"github.com/gorilla/schema"
	"github.com/labstack/echo/v4"

	"github.com/lazyreq/lazyreq/reqctx"
)

func schemaQuery() func(*reqctx.Host) (query, error) {
	decoder := schema.NewDecoder()
	return func(ctx *reqctx.Host) (v query, err error) {
		err = decoder.Decode(&v, ctx.Request().URL.Query())
		return v, err
	}
}

func formQuery() func(*reqctx.Host) (query, error) {
	decoder := form.NewDecoder()
	return func(ctx *reqctx.Host) (v query, err error) {
		err = decoder.Decode(&v, ctx.Request().URL.Query())
		return v, err
	}
}

// ginQuery returns a function that does the same as a context's ShouldBindQuery.
func ginQuery() func(*reqctx.Host) (query, error) {
	binding.Validator = nil
	return func(ctx *reqctx.Host) (v query, err error) {
		err = binding.Query.Bind(ctx.Request(), &v)
		return v, err
	}
}

// ginJSON returns a function that does the same as ShouldBindJSON.
func ginJSON() func(*reqctx.Host) (profile, error) {
	binding.Validator = nil
	return func(ctx *reqctx.Host) (v profile, err error) {
		err = binding.JSON.Bind(ctx.Request(), &v)
		return v, err
	}
}

// echoQuery takes a context for each request out of a pool, as its server does.
func echoQuery() func(*reqctx.Host) (query, error) {
	e, w, binder := echo.New(), httptest.NewRecorder(), new(echo.DefaultBinder)
	return func(ctx *reqctx.Host) (v query, err error) {
		c := e.AcquireContext()
		defer e.ReleaseContext(c)
		c.Reset(ctx.Request(), w)
		err = binder.BindQueryParams(c, &v)
		return v, err
	}
}

func echoJSON() func(*reqctx.Host) (profile, error) {
	e, w, binder := echo.New(), httptest.NewRecorder(), new(echo.DefaultBinder)
	return func(ctx *reqctx.Host) (v profile, err error) {
		c := e.AcquireContext()
		defer e.ReleaseContext(c)
		c.Reset(ctx.Request(), w)
		err = binder.BindBody(c, &v)
		return v, err
	}
}

func plainJSON() func(*reqctx.Host) (profile, error) {
	return func(ctx *reqctx.Host) (v profile, err error) {
		data, err := io.ReadAll(ctx.Request().Body)
		if err == nil {
			err = json.Unmarshal(data, &v)
		}
		return v, err
	}
}
