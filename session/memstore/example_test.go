package memstore_test

import (
	"fmt"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

func ExampleNew() {
	store, err := memstore.New(memstore.Options{MaxKeys: 10_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := session.New(store, session.Options{})
	fmt.Println(m, err)
	// Output: [redacted] <nil>
}
