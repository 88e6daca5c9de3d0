package reqctx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Resolve gets the request's context, and not the one of the reader that comes first.
func ExampleKey_Get() {
	type who struct{}
	asker := reqctx.NewKey[any]("asker")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, asker, reqctx.Prop[any]{
		Resolve: func(ctx context.Context) (any, error) { return ctx.Value(who{}), nil },
	})

	c := reqctx.New(context.WithValue(context.Background(), who{}, "the request"), reg)
	reader := context.WithValue(c, who{}, "the reader")
	fmt.Println(asker.Get(reader))
	// Output:
	// the request <nil>
}

// A request keeps an error. Invalidate forgets it.
func ExampleKey_Invalidate() {
	tries := 0
	user := reqctx.NewKey[string]("user")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, user, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) {
			if tries++; tries == 1 {
				return "", errors.New("the database is down")
			}
			return "ada", nil
		},
	})

	c := reqctx.New(context.Background(), reg)
	for range 2 {
		_, err := user.Get(c)
		fmt.Println(err)
	}
	fmt.Println(user.Invalidate(c))
	fmt.Println(user.Get(c))
	// Output:
	// the database is down
	// the database is down
	// <nil>
	// ada <nil>
}

// A cycle is an error that names its path.
func ExampleKey_Get_cycle() {
	user, org := reqctx.NewKey[string]("user"), reqctx.NewKey[string]("org")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, user, reqctx.Prop[string]{Resolve: org.Get})
	reqctx.Provide(reg, org, reqctx.Prop[string]{Resolve: user.Get})

	_, err := user.Get(reqctx.New(context.Background(), reg))
	fmt.Println(err)
	var cycle *lazy.CycleError
	fmt.Println(errors.As(err, &cycle))
	// Output:
	// lazy: cycle: user -> org -> user
	// true
}

// Resolve resolves several properties in parallel and joins their errors.
func ExampleResolve() {
	user, flags := reqctx.NewKey[string]("user"), reqctx.NewKey[[]string]("flags")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, user, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return "ada", nil }})
	reqctx.Provide(reg, flags, reqctx.Prop[[]string]{
		Resolve: func(context.Context) ([]string, error) { return nil, errors.New("no flags") },
	})

	c := reqctx.New(context.Background(), reg)
	fmt.Println(reqctx.Resolve(c, "user", "flags"))
	fmt.Println(user.Peek(c))
	// Output:
	// flags: no flags
	// ada <nil> true
}

// Set calls Store before the value changes.
func ExampleKey_Set() {
	theme := reqctx.NewKey[string]("theme")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, theme, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "light", nil },
		Store: func(_ context.Context, v string) error {
			if v != "light" && v != "dark" {
				return fmt.Errorf("no theme %q", v)
			}
			fmt.Println("UPDATE users SET theme =", v)
			return nil
		},
	})

	c := reqctx.New(context.Background(), reg)
	fmt.Println(theme.Set(c, "pink"))
	fmt.Println(theme.Get(c))
	fmt.Println(theme.Set(c, "dark"))
	fmt.Println(theme.Get(c))
	// Output:
	// no theme "pink"
	// light <nil>
	// UPDATE users SET theme = dark
	// <nil>
	// dark <nil>
}

// Peek never resolves.
func ExampleKey_Peek() {
	user := reqctx.NewKey[string]("user")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, user, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return "ada", nil }})

	c := reqctx.New(context.Background(), reg)
	_, _, ok := user.Peek(c)
	fmt.Println(ok)
	_, _ = user.Get(c)
	name, err, ok := user.Peek(c)
	fmt.Println(name, err, ok)
	// Output:
	// false
	// ada <nil> true
}

// The phases of a request: resolve and set, commit, close.
func ExampleHost_Commit() {
	theme, user := reqctx.NewKey[string]("theme"), reqctx.NewKey[string]("user")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.Provide(reg, theme, reqctx.Prop[string]{
		Commit: func(_ context.Context, v string, _ int, h http.Header) error {
			h.Add("Set-Cookie", "theme="+v)
			return nil
		},
		Close: func(context.Context, string, error) error {
			fmt.Println("not called: the value was set, not resolved")
			return nil
		},
	})
	reqctx.Provide(reg, user, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return "ada", nil }})

	c := reqctx.New(context.Background(), reg)
	_ = theme.Set(c, "dark")
	header := http.Header{}
	fmt.Println(c.Commit(http.StatusOK, header), header)
	fmt.Println(theme.Set(c, "light"))
	fmt.Println(user.Get(c)) // properties can still be read
	_ = c.Finish()
	_, err := user.Get(c)
	fmt.Println(err)
	// Output:
	// <nil> map[Set-Cookie:[theme=dark]]
	// reqctx: the response header is already committed: "theme"
	// ada <nil>
	// reqctx: the request is finished: "user"
}

// A task is cancelled when the handler has returned. The request ends after the task.
func ExampleContext_Go() {
	c := reqctx.New(context.Background(), reqctx.NewRegistry(reqctx.Options{}))
	_ = c.Go("until the end", func(ctx context.Context) error {
		<-ctx.Done()
		fmt.Println("cancelled:", context.Cause(ctx))
		return ctx.Err()
	})
	fmt.Println("finished:", c.Finish())
	fmt.Println(c.Go("too late", func(context.Context) error { return nil }))
	// Output:
	// cancelled: lazy: scope closed
	// finished: <nil>
	// reqctx: the request is finished: "too late"
}

// Start begins to resolve a property before the handler reads it. The property then counts as read.
func ExampleKey_Start() {
	user := reqctx.NewKey[string]("user")
	reg := reqctx.NewRegistry(reqctx.Options{})
	began := make(chan struct{})
	reqctx.Provide(reg, user, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { close(began); return "ada", nil },
		Vary:    []string{"Cookie"},
	})

	c := reqctx.New(context.Background(), reg)
	fmt.Println(user.Start(c))
	<-began // Resolve runs on a new goroutine
	fmt.Println(user.Get(c))
	header := http.Header{}
	fmt.Println(c.Commit(http.StatusOK, header), header)
	// Output:
	// <nil>
	// ada <nil>
	// <nil> map[Vary:[Cookie]]
}

// GetAll loads only the values that the request does not have yet.
func ExampleBatch() {
	author := reqctx.NewBatch[int, string]("author")
	reg := reqctx.NewRegistry(reqctx.Options{})
	reqctx.ProvideBatch(reg, author, func(_ context.Context, ids []int) (map[int]string, error) {
		fmt.Println("SELECT id, name FROM authors WHERE id IN", ids)
		known := map[int]string{1: "ada", 2: "grace", 3: "barbara"}
		return known, nil
	})

	c := reqctx.New(context.Background(), reg)
	fmt.Println(author.GetAll(c, []int{3, 1, 3}))
	fmt.Println(author.GetAll(c, []int{1, 2, 3}))
	_, err := author.Get(c, 4)
	fmt.Println(err)
	// Output:
	// SELECT id, name FROM authors WHERE id IN [3 1]
	// [barbara ada barbara] <nil>
	// SELECT id, name FROM authors WHERE id IN [2]
	// [ada grace barbara] <nil>
	// SELECT id, name FROM authors WHERE id IN [4]
	// lazy: no value for the key: 4
}

// If a user has no unread messages, the count is 0 and not an error.
func ExampleBatch_missing() {
	unread := reqctx.NewBatch[string, int]("unread")
	reg := reqctx.NewRegistry(reqctx.Options{})
	count := func(_ context.Context, users []string) (map[string]int, error) {
		return map[string]int{"ada": 3}, nil // SELECT … GROUP BY user
	}
	reqctx.ProvideBatch(reg, unread, lazy.OrElse(count, 0))

	c := reqctx.New(context.Background(), reg)
	fmt.Println(unread.GetAll(c, []string{"grace", "ada"}))
	// Output:
	// [0 3] <nil>
}
