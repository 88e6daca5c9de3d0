// Package params compares the binding of a request to a struct: ours with gorilla/schema,
// go-playground/form, gin and echo, each used as its documentation shows but without
// validation, and for JSON with encoding/json, which checks less. Ours is measured with
// the making and ending of its request context.
package params
