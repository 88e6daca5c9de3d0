package memstore_test

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
)

func ExampleNew() {
	store, err := memstore.New(memstore.Options{MaxBytes: 16 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	leases, err := coord.NewLeases(store, coord.LeaseOptions{Name: "worker 1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := leases.Acquire(context.Background(), "ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release()
	holder, held, err := leases.Holder(context.Background(), "ada")
	fmt.Println(holder.Name, held, err)
	// Output: worker 1 true <nil>
}
