package params

import (
	"context"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

var defaults = Options{
	MaxBody: 1 << 20, MaxStream: 32 << 20, MaxFile: 10 << 20, MaxParts: 100, MaxParams: 1000, MaxDepth: 64, MaxElements: 10_000,
	ReadTimeout: 30 * time.Second,
}

const (
	// maxBody bounds MaxBody, as such a body is held in memory.
	maxBody = 1 << 30
	// maxDepth is the limit of package json itself.
	maxDepth = 10_000
)

// Options are the budget of a request: they bound the work that it can cause.
type Options struct {
	// MaxBody is the size in bytes of the largest body that is held in memory, at most
	// 1 GiB, as sent and again as inflated. It also bounds the texts and the small files
	// of a multipart form together. The zero value means 1 MiB. A larger body is a 413.
	MaxBody int64

	// MaxStream is the size in bytes of the largest body that is read as it comes, a
	// multipart form or that of Stream, as sent and again as inflated. The zero value
	// means 32 MiB.
	MaxStream int64

	// MaxFile is the size in bytes of the largest file of a multipart form, at most
	// MaxStream, into which the whole form has to fit. The zero value means 10 MiB.
	MaxFile int64

	// MaxParts is the number of parts of a multipart form. The zero value means 100.
	MaxParts int

	// MaxParams is the number of parameters of a query or a form, and of members of an
	// object in a JSON body. The zero value means 1000.
	MaxParams int

	// MaxDepth is how deep arrays and objects in a JSON body may nest, at most 10,000, and
	// how many structs a name like "items.0.price" may lead into. The zero value means 64.
	MaxDepth int

	// MaxElements is the number of elements and members of a JSON body, all arrays and
	// objects taken together, and of the elements that Bind makes from a query or a form:
	// a few bytes of a client can't become many large values. The zero value means 10,000.
	MaxElements int

	// ReadTimeout bounds the time from the first read of a body to its end. A later end is
	// a 408. The zero value means 30 s, a negative one no limit. With [Share] it is also
	// the connection's read deadline, unless [http.Server.ReadTimeout] is shorter; the time of
	// a route that is longer than that of the others replaces the server's. Without [Share]
	// the time is only checked when bytes arrive.
	ReadTimeout time.Duration

	// Decoders inflate content codings other than gzip and deflate, such as br and zstd,
	// by their names in lower case. They have to bound what they hold beside their output.
	Decoders map[string]func(io.Reader) (io.ReadCloser, error)

	// TempDir is the directory for files of a multipart form that are too large for
	// memory, until the request ends. The zero value means [os.TempDir].
	TempDir string

	// DisallowUnknownFields makes DecodeJSON, JSON and Bind refuse a member that has no
	// field in the destination, and Bind such a parameter of a query or form of which it
	// binds anything. By default they ignore it.
	DisallowUnknownFields bool

	// Validate checks what Bind or JSON has filled in without finding a mistake; v is a pointer to it. To blame
	// fields it returns errors made by [Fault], joined or as [Errors]; any other error is
	// the program's.
	Validate func(ctx context.Context, v any) error

	// Routes are the budgets of single routes, by the request's Pattern, for
	// [http.ServeMux] the pattern given to Handle. A zero field there means the value
	// here. They apply once the request is routed. For a server, a pattern that none of
	// its routes has is an error of Serve, or a warning if a handler of it may be a router.
	Routes map[string]Options

	extends bool // a route's ReadTimeout is longer than that of the others
}

// Err returns an error that names the first field which is out of range.
func (o Options) Err() error {
	_, err := newBudgets(o)
	return err
}

// check returns an error if a field is out of range. It calls the options by a name.
func (o Options) check(name string) error {
	for _, f := range []struct {
		name       string
		value, max int64
	}{
		{"MaxBody", o.MaxBody, maxBody},
		{"MaxStream", o.MaxStream, math.MaxInt64 - 1},
		{"MaxFile", o.MaxFile, math.MaxInt64 - 1},
		{"MaxParts", int64(o.MaxParts), math.MaxInt},
		{"MaxParams", int64(o.MaxParams), math.MaxInt},
		{"MaxDepth", int64(o.MaxDepth), maxDepth},
		{"MaxElements", int64(o.MaxElements), math.MaxInt},
		{"ReadTimeout", max(0, int64(o.ReadTimeout)), int64(option.MaxDuration)},
	} {
		if f.value < 0 || f.value > f.max {
			return option.Errorf("params", name+"."+f.name, "is %d, want 0 to %d", f.value, f.max)
		}
	}
	for coding, decoder := range o.Decoders {
		if coding == "" || coding != strings.ToLower(coding) || decoder == nil {
			return option.Errorf("params", name+".Decoders", "has %q, want a name in lower case and a function", coding)
		}
	}
	return nil
}

// resolve returns o with base's fields where its own are zero, and checks them.
func (o Options) resolve(name string, base Options) (Options, error) {
	full := o.withBase(base)
	err := full.check(name)
	if err == nil && o.MaxFile > full.MaxStream {
		err = option.Errorf("params", name+".MaxFile", "is %d, more than MaxStream, %d", o.MaxFile, full.MaxStream)
	}
	return full, err
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

// budgets are the Options of routes, and of all other requests, with their defaults.
type budgets struct {
	rest   Options
	routes map[string]*Options
}

func newBudgets(o Options) (*budgets, error) {
	rest, err := o.resolve("Options", defaults)
	if err != nil {
		return nil, err
	}
	rest.Routes = nil // a route has none of its own
	b := &budgets{rest: rest, routes: map[string]*Options{}}
	for pattern, route := range o.Routes {
		name := "Options.Routes[" + strconv.Quote(pattern) + "]"
		if route.Routes != nil {
			return nil, option.Errorf("params", name+".Routes", "is set, want Routes in Options only")
		}
		if route, err = route.resolve(name, rest); err != nil {
			return nil, err
		}
		route.extends = route.ReadTimeout > rest.ReadTimeout && rest.ReadTimeout > 0
		b.routes[pattern] = &route
	}
	return b, nil
}

// forRequest returns the budget of r.
func (b *budgets) forRequest(r *http.Request) *Options {
	if o := b.routes[r.Pattern]; o != nil {
		return o
	}
	return &b.rest
}
