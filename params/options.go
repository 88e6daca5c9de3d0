package params

import (
	"context"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

var defaults = Options{
	MaxBody: 1 << 20, MaxStream: 32 << 20, MaxFile: 10 << 20, MaxParts: 100, MaxParams: 1000, MaxDepth: 64, MaxElements: 10_000,
	ReadTimeout: 30 * time.Second,
}

const (
	// maxBody is the upper limit for MaxBody, because such a body is held in memory.
	maxBody = 1 << 30
	// maxDepth is the limit of package json.
	maxDepth = 10_000
)

// Options are the budget of a request. They bound the work that it can cause.
type Options struct {
	// MaxBody is the size in bytes of the largest body that is held in memory, at most 1 GiB. It applies to
	// the body as sent and to the inflated body, and also to the texts of a multipart form. Small files that
	// come before its texts may take as much again. At most 32 KiB are reserved before the bytes arrive. The zero
	// value means 1 MiB. A larger body is a 413.
	MaxBody int64

	// MaxStream is the size in bytes of the largest body that is read as a stream: a multipart form, or the
	// body of Stream. It applies to the body as sent and to the inflated body. The zero value means 32 MiB.
	MaxStream int64

	// MaxFile is the size in bytes of the largest file in a multipart form, at most MaxStream, which bounds
	// the whole form. The zero value means 10 MiB.
	MaxFile int64

	// MaxParts is the number of parts in a multipart form. The zero value means 100.
	MaxParts int

	// MaxParams is the number of parameters in a query or a form, and of members in a JSON object. The zero
	// value means 1000.
	MaxParams int

	// MaxDepth is the nesting depth of arrays and objects in a JSON body, at most 10,000, and of structs in
	// a name such as "items.0.price". The zero value means 64.
	MaxDepth int

	// MaxElements is the number of elements and members in a JSON body, and of the elements that Bind makes
	// from a query or a form. The zero value means 10,000.
	MaxElements int

	// ReadTimeout is the time from the first read of a body to its end. A slower body is a 408. The zero
	// value means 30 s, and a negative value means no limit. After [Share], it is also the connection's read
	// deadline, unless [http.Server.ReadTimeout] is shorter. If a route's ReadTimeout is longer than that of
	// the others, it replaces the server's. Without [Share], the time is only checked when bytes arrive.
	ReadTimeout time.Duration

	// TempDir is the directory for files of a multipart form that are too large for memory, until the
	// request ends. The zero value means [os.TempDir].
	TempDir string

	// DisallowUnknownFields makes DecodeJSON, JSON and Bind refuse a member of a JSON object that has no field in the
	// destination.
	DisallowUnknownFields bool

	// Validate checks the value that Bind or JSON has filled without finding a mistake. v is a pointer to it. To
	// blame fields, it returns errors made by [Fault], joined or as [Errors]. Any other error is the program's.
	Validate func(ctx context.Context, v any) error

	// Routes are the budgets of single routes. The keys are patterns, as in the request's Pattern. In a
	// route's budget, the zero value means the value for the other routes. Serve of a server logs a warning for a
	// pattern here that is not a route of the server.
	Routes map[string]Options

	extends bool // a route's ReadTimeout is longer than that of the others
}

// Err returns an error that names the first field which is out of range.
func (o Options) Err() error {
	_, err := newBudgets(o)
	return err
}

// resolve returns o with base's fields where its own are zero. It returns an error that starts with name if
// a field is out of range.
func (o Options) resolve(name string, base Options) (Options, error) {
	maxFile := o.MaxFile
	o = o.withBase(base)
	if maxFile == 0 { // the default may be more than the stream
		maxFile = min(o.MaxFile, o.MaxStream)
	}
	for _, f := range []struct {
		name       string
		value, max int64
	}{
		{"MaxBody", o.MaxBody, maxBody},
		{"MaxStream", o.MaxStream, math.MaxInt64 - 1},
		{"MaxFile", maxFile, o.MaxStream},
		{"MaxParts", int64(o.MaxParts), math.MaxInt},
		{"MaxParams", int64(o.MaxParams), math.MaxInt},
		{"MaxDepth", int64(o.MaxDepth), maxDepth},
		{"MaxElements", int64(o.MaxElements), math.MaxInt},
		{"ReadTimeout", max(0, int64(o.ReadTimeout)), int64(option.MaxDuration)},
	} {
		if f.value < 0 || f.value > f.max {
			return o, option.Errorf("params", name+"."+f.name, "is %d, want 0 to %d", f.value, f.max)
		}
	}
	return o, nil
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

// budgets holds the Options of single routes and of all other requests. The defaults are filled in.
type budgets struct {
	rest   Options
	routes map[string]*Options
}

func newBudgets(o Options) (*budgets, error) {
	rest, err := o.resolve("Options", defaults)
	if err != nil {
		return nil, err
	}
	rest.Routes = nil
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
