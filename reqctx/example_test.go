package reqctx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/reqctx"
)

// A property is resolved when it is first read. Its function may read other properties.
func ExampleProvide() {
	name := reqctx.NewKey[string]("name")
	greeting := reqctx.NewKey[string]("greeting")

	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, name, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			fmt.Println("resolving name")
			return reqctx.From(ctx).Request().Header.Get("Name"), nil
		},
		Vary: []string{"Name"},
	})
	reqctx.Provide(reg, greeting, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			n, err := name.Get(ctx)
			return "Hello, " + n, err
		},
	})

	c := reqctx.New(context.Background(), reg)
	c.SetRequest(&http.Request{Header: http.Header{"Name": {"Ada"}}})
	for range 2 {
		text, err := greeting.Get(c)
		fmt.Println(text, err)
	}
	header := http.Header{}
	fmt.Println(c.Commit(http.StatusOK, header), header)
	fmt.Println(c.Finish())
	// Output:
	// resolving name
	// Hello, Ada <nil>
	// Hello, Ada <nil>
	// <nil> map[Vary:[Name]]
	// <nil>
}

// Close functions undo resolutions, after the response and in reverse order.
func ExampleProp_close() {
	closing := func(_ context.Context, v string, err error) error {
		fmt.Println("close", v, err)
		return nil
	}
	conn, tx := reqctx.NewKey[string]("conn"), reqctx.NewKey[string]("tx")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, conn, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "connection", nil },
		Close:   closing,
	})
	reqctx.Provide(reg, tx, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			c, err := conn.Get(ctx)
			return "transaction on " + c, err
		},
		Close: closing,
	})

	c := reqctx.New(context.Background(), reg)
	fmt.Println(tx.Get(c))
	fmt.Println("finished:", c.Finish())
	_, err := tx.Get(c)
	fmt.Println(err)
	// Output:
	// transaction on connection <nil>
	// close transaction on connection <nil>
	// close connection <nil>
	// finished: <nil>
	// reqctx: the request is finished: "tx"
}

// A test gives a request the value of a property.
func ExamplePreset() {
	user := reqctx.NewKey[string]("user")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, user, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "", errors.New("there is no database in a test") },
	})
	handler := func(w http.ResponseWriter, r *http.Request) {
		name, err := user.Get(r.Context())
		fmt.Println(name, err)
	}

	c := reqctx.New(reqctx.Preset(context.Background(), user, "Ada"), reg) // as server does
	fmt.Println(c.PresetErr())
	handler(nil, new(http.Request).WithContext(c))
	fmt.Println(c.Finish())
	// Output:
	// <nil>
	// Ada <nil>
	// <nil>
}
