package lazy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
)

// A value is computed once, when it is first needed.
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
		name, err := org.Get(ctx) // passing ctx on makes the cycle visible
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

// Three tasks ask for one user each. Usually the database is asked once for all of them.
func ExampleBatch() {
	users := lazy.NewBatch(func(_ context.Context, ids []int) (map[int]string, error) {
		return map[int]string{1: "ada", 2: "grace", 3: "barbara"}, nil // SELECT … WHERE id IN (ids)
	})

	s := lazy.NewScope(context.Background())
	defer s.Close()
	load := func(id int) *lazy.Value[string] {
		return lazy.In(s, func(ctx context.Context) (string, error) { return users.Get(ctx, id) })
	}
	a, b, c := load(1), load(2), load(3)
	if err := lazy.All(s.Context(), a, b, c); err != nil {
		fmt.Println(err)
	}
	for _, v := range []*lazy.Value[string]{a, b, c} {
		name, _ := v.Get(s.Context())
		fmt.Println(name)
	}
	// Output:
	// ada
	// grace
	// barbara
}

// A hundred goroutines read a value that is computed once.
func ExampleValue_Get() {
	var calls atomic.Int32
	price := lazy.New(func(context.Context) (int, error) {
		calls.Add(1)
		return 42, nil
	})
	var readers sync.WaitGroup
	for range 100 {
		readers.Go(func() { _, _ = price.Get(context.Background()) })
	}
	readers.Wait()
	fmt.Println("calls:", calls.Load())
	// Output:
	// calls: 1
}

// If a reader's context ends, its Get returns. The computation goes on for the other readers.
func ExampleIn() {
	s := lazy.NewScope(context.Background())
	defer s.Close()
	hurried, leave := context.WithCancelCause(context.Background())
	release := make(chan struct{})
	report := lazy.In(s, func(context.Context) (string, error) {
		fmt.Println("computing")
		leave(errors.New("no time"))
		<-release
		return "report", nil
	})

	_, err := report.Get(hurried)
	fmt.Println(err)
	close(release)
	fmt.Println(report.Get(context.Background()))
	// Output:
	// computing
	// no time
	// report <nil>
}

// A stand-alone value is cancelled when its last reader leaves.
func ExampleNew() {
	hurried, leave := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	report := lazy.New(func(ctx context.Context) (string, error) {
		leave(errors.New("no time"))
		<-ctx.Done()
		close(ended)
		return "", context.Cause(ctx)
	})

	_, err := report.Get(hurried)
	<-ended
	fmt.Println("the reader gets:", err)
	// Output:
	// the reader gets: no time
}

// A panic of the function is a panic of each reader.
func ExamplePanicError() {
	broken := lazy.New(func(context.Context) (int, error) { panic(errors.New("no such table")) })
	read := func() {
		defer func() {
			p := recover().(*lazy.PanicError)
			fmt.Println(p.Value, "has a stack:", len(p.Stack) > 0)
		}()
		_, _ = broken.Get(context.Background())
	}
	read()
	// Output:
	// no such table has a stack: true
}

// All starts its values together and returns the first error.
func ExampleAll() {
	s := lazy.NewScope(context.Background())
	defer s.Close()
	user := lazy.In(s, func(context.Context) (string, error) { return "ada", nil })
	flags := lazy.In(s, func(context.Context) ([]string, error) { return nil, errors.New("no flags") })
	fmt.Println(lazy.All(s.Context(), user, flags))
	fmt.Println(user.Get(s.Context()))
	// Output:
	// no flags
	// ada <nil>
}

// Close cancels what runs, and waits for it.
func ExampleScope_Close() {
	s := lazy.NewScope(context.Background())
	task := lazy.Go(s, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		fmt.Println("the task has ended")
		return 0, context.Cause(ctx)
	})
	never := lazy.In(s, func(context.Context) (int, error) { return 1, nil })

	fmt.Println("closed:", s.Close())
	fmt.Println(task.Get(context.Background()))
	fmt.Println(never.Get(context.Background()))
	// Output:
	// the task has ended
	// closed: <nil>
	// 0 lazy: scope closed
	// 0 lazy: scope closed
}
