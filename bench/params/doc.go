// Package params compares the binding of a request to a struct. The peers are gorilla/schema, go-playground/form,
// gin and echo, each used as in its documentation but without validation. For JSON, encoding/json is also a peer,
// although it checks less. All run within a request context of this library, so the benchmark compares only the
// cost of binding.
package params
