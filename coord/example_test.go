package coord_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
)

// A token starts one machine, even if it is presented several times.
func ExampleTokens() {
	store, _ := memstore.New(memstore.Options{}) // or redisstore.New
	tokens, _ := coord.NewTokens(store)
	ctx := context.Background()

	id := coord.NewID()
	if err := tokens.Issue(ctx, id, []byte("small"), 30*time.Second); err != nil {
		fmt.Println(err)
	}
	for _, name := range []string{"ada", "bob"} {
		token, err := tokens.Use(ctx, id, name)
		switch {
		case errors.Is(err, coord.ErrUsed):
			fmt.Println(name, "is late: used by", token.UsedBy)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Printf("%s starts a %s machine\n", name, token.Metadata)
		}
	}
	_, err := tokens.Use(ctx, "never issued", "eve")
	fmt.Println(err)
	// Output:
	// ada starts a small machine
	// bob is late: used by ada
	// coord: unknown token
}

// Only one worker at a time works for a user.
func ExampleLeases_Run() {
	store, _ := memstore.New(memstore.Options{}) // or redisstore.New
	leases, _ := coord.NewLeases(store, coord.LeaseOptions{Lifetime: 10 * time.Second, Name: "worker 1"})
	ctx := context.Background()

	err := leases.Run(ctx, "ada", func(ctx context.Context) error {
		fmt.Println("working")
		fmt.Println(leases.Run(ctx, "ada", nil) != nil)
		return ctx.Err() // nil if the worker still holds the lease
	})
	fmt.Println(err)
	// Output:
	// working
	// true
	// <nil>
}

// Acquire returns the lease, or an error that names its holder.
func ExampleLeases() {
	store, _ := memstore.New(memstore.Options{}) // or redisstore.New
	leases, _ := coord.NewLeases(store, coord.LeaseOptions{Lifetime: 10 * time.Second, Name: "worker 1"})
	ctx := context.Background()

	lease, err := leases.Acquire(ctx, "ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = leases.Acquire(ctx, "ada")
	var denied *coord.DeniedError
	if errors.As(err, &denied) {
		fmt.Println("held by", denied.Holder)
	}
	fmt.Println(lease.Release())
	fmt.Println(context.Cause(lease.Context()))
	// Output:
	// held by worker 1
	// <nil>
	// coord: the lease was released
}
