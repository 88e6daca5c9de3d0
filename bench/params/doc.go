// Package params compares the binding of a request to a struct: ours with gorilla/schema,
// go-playground/form, gin and echo, each used as in its documentation but without
// validation, and for JSON with encoding/json, which checks less. All of them run within a
// request context of ours, so that the benchmark compares the cost that a binding adds.
package params
