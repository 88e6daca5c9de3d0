package coord_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
)

// A machine is started once, however often the token arrives.
func ExampleTokens() {
	store, _ := memstore.New(memstore.Options{}) // or NewRedis
	tokens, _ := coord.NewTokens(store)
	ctx := context.Background()

	id := coord.NewID()
	if err := tokens.Issue(ctx, id, []byte("small"), 30*time.Second); err != nil {
		fmt.Println(err)
	}
	for _, who := range []string{"ada", "bob"} {
		token, err := tokens.Use(ctx, id, who)
		switch {
		case errors.Is(err, coord.ErrUsed):
			fmt.Println(who, "is late: used by", token.UsedBy)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Printf("%s starts a %s machine\n", who, token.Metadata)
		}
	}
	_, err := tokens.Use(ctx, "never issued", "eve")
	fmt.Println(err)
	// Output:
	// ada starts a small machine
	// bob is late: used by ada
	// coord: unknown token
}

// Only one works for a user at a time.
func ExampleRun() {
	store, _ := memstore.New(memstore.Options{}) // or NewRedis
	leases, _ := coord.NewLeases(store, coord.LeaseOptions{Lifetime: 10 * time.Second, Name: "worker 1"})
	ctx := context.Background()

	err := coord.Run(ctx, leases, "ada", func(ctx context.Context) error {
		fmt.Println("working")
		fmt.Println(coord.Run(ctx, leases, "ada", nil) != nil)
		holder, held, err := leases.Holder(ctx, "ada")
		fmt.Println(holder.Name, held, err)
		return ctx.Err() // nil as long as the lease is ours
	})
	fmt.Println(err)
	// Output:
	// working
	// true
	// worker 1 true <nil>
	// <nil>
}
