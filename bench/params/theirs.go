package params

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin/binding"
	"github.com/go-playground/form/v4"
	"github.com/gorilla/schema"
	"github.com/labstack/echo/v4"
)

func schemaQuery() func(*http.Request) (query, error) {
	decoder := schema.NewDecoder()
	return func(r *http.Request) (v query, err error) {
		err = decoder.Decode(&v, r.URL.Query())
		return v, err
	}
}

func formQuery() func(*http.Request) (query, error) {
	decoder := form.NewDecoder()
	return func(r *http.Request) (v query, err error) {
		err = decoder.Decode(&v, r.URL.Query())
		return v, err
	}
}

// ginQuery is what ShouldBindQuery of a context does.
func ginQuery() func(*http.Request) (query, error) {
	binding.Validator = nil
	return func(r *http.Request) (v query, err error) {
		err = binding.Query.Bind(r, &v)
		return v, err
	}
}

// ginJSON is what ShouldBindJSON does.
func ginJSON() func(*http.Request) (profile, error) {
	binding.Validator = nil
	return func(r *http.Request) (v profile, err error) {
		err = binding.JSON.Bind(r, &v)
		return v, err
	}
}

// echoQuery takes a context for each request out of a pool, as its server does.
func echoQuery() func(*http.Request) (query, error) {
	e, w, binder := echo.New(), httptest.NewRecorder(), new(echo.DefaultBinder)
	return func(r *http.Request) (v query, err error) {
		c := e.AcquireContext()
		defer e.ReleaseContext(c)
		c.Reset(r, w)
		err = binder.BindQueryParams(c, &v)
		return v, err
	}
}

func echoJSON() func(*http.Request) (profile, error) {
	e, w, binder := echo.New(), httptest.NewRecorder(), new(echo.DefaultBinder)
	return func(r *http.Request) (v profile, err error) {
		c := e.AcquireContext()
		defer e.ReleaseContext(c)
		c.Reset(r, w)
		err = binder.BindBody(c, &v)
		return v, err
	}
}

func plainJSON() func(*http.Request) (profile, error) {
	return func(r *http.Request) (v profile, err error) {
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &v)
		}
		return v, err
	}
}
