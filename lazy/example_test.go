package lazy_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/lazy"
)

// A value is computed when it is first needed, and once.
func ExampleValue() {
	config := lazy.New(func(context.Context) (string, error) {
		fmt.Println("reading the configuration")
		return "port 8080", nil
	})
	ctx := context.Background()
	for range 2 {
		text, err := config.Get(ctx)
		fmt.Println(text, err)
	}
	// Output:
	// reading the configuration
	// port 8080 <nil>
	// port 8080 <nil>
}

// Two tasks that run at the same time and end with their scope.
func ExampleScope() {
	s := lazy.NewScope(context.Background())
	defer fmt.Println("closed") // after Close, which is deferred later
	defer s.Close()

	name := lazy.Go(s, func(context.Context) (string, error) { return "ada", nil })
	visits := lazy.Go(s, func(context.Context) (int, error) { return 36, nil })
	if err := lazy.All(s.Context(), name, visits); err != nil {
		fmt.Println(err)
		return
	}
	user, _, _ := name.Peek()
	times, _, _ := visits.Peek()
	fmt.Println(user, times)
	// Output:
	// ada 36
	// closed
}

// Two values that need each other.
func ExampleCycleError() {
	var user, org *lazy.Value[string]
	user = lazy.New(func(ctx context.Context) (string, error) {
		name, err := org.Get(ctx) // passes on ctx: this is how the cycle is seen
		return "user of " + name, err
	})
	org = lazy.New(func(ctx context.Context) (string, error) {
		name, err := user.Get(ctx)
		return "org of " + name, err
	})
	_, err := user.Get(context.Background())
	var cycle *lazy.CycleError
	fmt.Println(errors.As(err, &cycle), len(cycle.Path), cycle.Path[0] == cycle.Path[2])
	// Output:
	// true 3 true
}
