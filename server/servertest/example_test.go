package servertest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
)

var account = reqctx.NewKey[string]("account")

func newApp() (*server.Server, error) {
	srv, err := server.New(server.Options{})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), account, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "", errors.New("no database in a test") },
	})
	srv.HandleFunc("GET /account", func(w http.ResponseWriter, req *server.Request) error {
		name, err := account.Get(req)
		if err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, map[string]string{"account": name})
	})
	return srv, nil
}

// A test presets the property that needs a database, and makes sure that the handler needs
// nothing else.
func ExampleDo() {
	t := new(testing.T) // a test's own
	srv, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/account", nil)
	res := servertest.Do(t, srv, servertest.Preset(r, account, "ada"))
	res.RequireResolved(t)
	_, _ = res.Body.WriteTo(os.Stdout)
	// Output: {"account":"ada"}
}
