package problem

import (
	"context"
	"net/http"
)

// Writer answers r with the response that err stands for.
type Writer func(w http.ResponseWriter, r *http.Request, err error)

// WriterKey is the key of a Writer in the context of a server's request. Middleware of other packages
// answers with it, so that the server decides how its errors look.
type WriterKey struct{}

// WriterOf returns the Writer of ctx, or nil if there is none.
func WriterOf(ctx context.Context) Writer {
	w, _ := ctx.Value(WriterKey{}).(Writer)
	return w
}
