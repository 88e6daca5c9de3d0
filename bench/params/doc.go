// Package params compares the binding of a request to a struct: ours with gorilla/schema,
// go-playground/form, gin and echo, each used as its documentation shows but without
// validation, and for JSON with encoding/json, which checks less. All of them run within a
// request context of ours, so that what is compared is what a binding adds to a request.
package params
