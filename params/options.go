package params

import "fmt"

const (
	defaultMaxBody   = 1 << 20
	defaultMaxParams = 1000
	defaultMaxDepth  = 64

	// largestBody keeps a body that is held in memory to a size that can be.
	largestBody = 1 << 30
	// deepest is where encoding/json itself gives up.
	deepest = 10_000
)

// Options bound the work that one request can cause. The zero value is the
// documented default of every field.
type Options struct {
	// MaxBody is the largest body in bytes, at most 1 GiB, since it is held in
	// memory. 0 is 1 MiB. A larger body is answered 413.
	MaxBody int64

	// MaxParams is how many parameters a query or a form may have, and how many
	// members an object in a JSON body. 0 is 1000.
	MaxParams int

	// MaxDepth is how deep arrays and objects in a JSON body may nest, at most
	// 10,000. 0 is 64.
	MaxDepth int

	// DisallowUnknownFields makes DecodeJSON refuse a member that the
	// destination has no field for. By default it is ignored.
	DisallowUnknownFields bool
}

// withDefaults resolves the zero fields and checks the others.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.MaxBody < 0 || o.MaxBody > largestBody:
		return o, fmt.Errorf("params: Options.MaxBody is %d, want 0 to %d", o.MaxBody, largestBody)
	case o.MaxParams < 0:
		return o, fmt.Errorf("params: Options.MaxParams is %d, want 0 or more", o.MaxParams)
	case o.MaxDepth < 0 || o.MaxDepth > deepest:
		return o, fmt.Errorf("params: Options.MaxDepth is %d, want 0 to %d", o.MaxDepth, deepest)
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.MaxParams == 0 {
		o.MaxParams = defaultMaxParams
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = defaultMaxDepth
	}
	return o, nil
}
