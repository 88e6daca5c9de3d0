package lazy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
)

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

// A reader whose context ends leaves; the computation goes on for the others.
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
