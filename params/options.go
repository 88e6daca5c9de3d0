package params

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"time"
)

const (
	defaultMaxBody     = 1 << 20
	defaultMaxStream   = 32 << 20
	defaultMaxFile     = 10 << 20
	defaultMaxParts    = 100
	defaultMaxParams   = 1000
	defaultMaxDepth    = 64
	defaultMaxElements = 10_000
	defaultReadTimeout = 30 * time.Second

	// largestBody keeps a body that is held in memory to a size that can be.
	largestBody = 1 << 30
	// deepest is where package json itself gives up.
	deepest = 10_000
)

// Options are the budget: they bound the work that one request can cause. The
// zero value is the documented default of every field.
type Options struct {
	// MaxBody is the largest body in bytes that is held in memory, at most 1 GiB;
	// it counts for what the client sends and once more for what that inflates to.
	// The texts of a multipart form and its smaller files together are held, too.
	// 0 is 1 MiB. A larger body is answered 413.
	MaxBody int64

	// MaxStream is the largest body in bytes that is read as it comes, a multipart
	// form or that of Stream, again as sent and as inflated. 0 is 32 MiB.
	MaxStream int64

	// MaxFile is the largest file of a multipart form, in bytes. 0 is 10 MiB.
	MaxFile int64

	// MaxParts is how many parts a multipart form may have. 0 is 100.
	MaxParts int

	// MaxParams is how many parameters a query or a form may have, and how many
	// members an object in a JSON body. 0 is 1000.
	MaxParams int

	// MaxDepth is how deep arrays and objects in a JSON body may nest, at most
	// 10,000, and how many names a name like "items.0.price" may have. 0 is 64.
	MaxDepth int

	// MaxElements is how many elements and members a JSON body may have, all
	// arrays and objects taken together, and how many elements Bind may make of a
	// query or a form: what the client sends can't make many large values of a few
	// bytes. 0 is 10,000.
	MaxElements int

	// ReadTimeout bounds the time from the first read of a body to its end. Later
	// ones are answered 408. 0 is 30 s; a negative one is none. Where the server
	// supports it (see [Share]) the deadline is the connection's too, and then
	// also ends a read that waits; elsewhere it is seen when something comes.
	ReadTimeout time.Duration

	// Decoders inflate content codings other than gzip and deflate, such as br and
	// zstd, by their names in lower case. What they hold beside their output is up
	// to them: bound their windows.
	Decoders map[string]func(io.Reader) (io.ReadCloser, error)

	// TempDir is where files of a multipart form are kept that are too large for
	// memory, until the request ends. Empty is [os.TempDir].
	TempDir string

	// DisallowUnknownFields makes DecodeJSON, JSON and Bind refuse a member that
	// the destination has no field for, and Bind also such a parameter of the
	// query or form, if it binds any of it. By default it is ignored.
	DisallowUnknownFields bool

	// PathValue looks up a path value for a router that doesn't tell it by
	// [http.Request.PathValue]. It is asked where that has none.
	PathValue func(r *http.Request, name string) (value string, ok bool)

	// Validate checks what Bind or JSON has filled in; v is a pointer to it. To
	// blame fields it returns errors made by [Fault], joined or as [Errors]; any
	// other error is the program's.
	Validate func(ctx context.Context, v any) error

	// Routes are the budgets of single routes, by the request's Pattern, for
	// [http.ServeMux] what was given to Handle. A field that is zero there is as it
	// is here. They hold from when the request is routed.
	Routes map[string]Options

	extends bool // ReadTimeout is a route's own, longer than that of the others
}

// withDefaults resolves the zero fields and checks the others.
func (o Options) withDefaults() (Options, error) {
	for _, f := range []struct {
		name        string
		value, most int64
	}{
		{"MaxBody", o.MaxBody, largestBody},
		{"MaxStream", o.MaxStream, math.MaxInt64 - 1},
		{"MaxFile", o.MaxFile, math.MaxInt64 - 1},
		{"MaxParts", int64(o.MaxParts), math.MaxInt},
		{"MaxParams", int64(o.MaxParams), math.MaxInt},
		{"MaxDepth", int64(o.MaxDepth), deepest},
		{"MaxElements", int64(o.MaxElements), math.MaxInt},
	} {
		if f.value < 0 || f.value > f.most {
			return o, fmt.Errorf("params: Options.%s is %d, want 0 to %d", f.name, f.value, f.most)
		}
	}
	for name, decoder := range o.Decoders {
		if name == "" || name != strings.ToLower(name) || decoder == nil {
			return o, fmt.Errorf("params: Options.Decoders[%q] needs a name in lower case and a function", name)
		}
	}
	return o.withBase(Options{
		MaxBody: defaultMaxBody, MaxStream: defaultMaxStream, MaxFile: defaultMaxFile, MaxParts: defaultMaxParts,
		MaxParams: defaultMaxParams, MaxDepth: defaultMaxDepth, MaxElements: defaultMaxElements,
		ReadTimeout: defaultReadTimeout,
	}), nil
}

// withBase returns o with base's fields where its own are zero.
func (o Options) withBase(base Options) Options {
	to, from := reflect.ValueOf(&o).Elem(), reflect.ValueOf(base)
	for i := range to.NumField() {
		if f := to.Field(i); f.CanSet() && f.IsZero() {
			f.Set(from.Field(i))
		}
	}
	return o
}

// budgets are resolved Options: those of routes, and those of all others.
type budgets struct {
	rest   Options
	routes map[string]*Options
}

func newBudgets(o Options) (*budgets, error) {
	rest, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	rest.Routes = nil // a route has none of its own
	b := &budgets{rest: rest, routes: map[string]*Options{}}
	for pattern, route := range o.Routes {
		if route.Routes != nil {
			return nil, fmt.Errorf("params: Options.Routes[%q] has Routes itself", pattern)
		}
		route, err := route.withBase(rest).withDefaults()
		if err != nil {
			return nil, fmt.Errorf("params: Options.Routes[%q]: %w", pattern, err)
		}
		route.extends = route.ReadTimeout > rest.ReadTimeout && rest.ReadTimeout > 0
		b.routes[pattern] = &route
	}
	return b, nil
}

// of returns the budget of r.
func (b *budgets) of(r *http.Request) *Options {
	if o := b.routes[r.Pattern]; o != nil {
		return o
	}
	return &b.rest
}
