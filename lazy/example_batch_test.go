package lazy_test

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/lazy"
)

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
