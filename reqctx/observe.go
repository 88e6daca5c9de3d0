package reqctx

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// ErrNotReturned is the error that an [Observer] gets if Resolve panicked or ended its goroutine.
var ErrNotReturned = errors.New("reqctx: Resolve did not return")

// Observer is called for each resolution, on the goroutine of the resolution. Its methods must be safe for concurrent
// use, and must not block or panic.
type Observer interface {
	// ResolveStart is called before Resolve, and returns the context for it: ctx or one derived from ctx.
	ResolveStart(ctx context.Context, name string) context.Context
	// ResolveEnd is called after Resolve with that context.
	ResolveEnd(ctx context.Context, name string, took time.Duration, err error)
}

// Reader returns the context of the first reader of the property that is resolved under ctx. This is a handler's
// context, or the context of another property's resolution. Observers need it because the context of Resolve does not
// have the values of its readers' contexts. If ctx is not the context of a resolution, Reader returns ctx.
func Reader(ctx context.Context) context.Context {
	if f := lazy.Current(ctx); f != nil {
		if a, ok := f.Work().(*attempt); ok {
			return a.reader
		}
	}
	return ctx
}

// State is the state of a property in a request.
type State uint8

// The states of a property.
const (
	Unused    State = iota // not read
	Resolving              // being resolved
	Resolved               // has a value
	Failed                 // has an error or a panic
	Assigned               // has a value that was set
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"unused", "resolving", "resolved", "failed", "assigned"}[s]
}

// Info describes a property in a request.
type Info struct {
	State   State
	Private bool          // it can be read only with its key
	Began   time.Time     // when the resolution began
	Took    time.Duration // how long Resolve ran
	Waited  time.Duration // how long all readers together waited
	Asked   int           // how many readers had to wait
	By      string        // the property whose resolution read it first, "" if that was the handler
	Err     error

	pcs []uintptr // the stack of the first reader, for Caller
}

// Props returns the properties with their current states, in the order in which they were provided. It leaves out
// those of [ProvideState]. After [Host.Finish], all properties are [Unused]. An OnClose function that was registered
// first still sees all states.
func (c *Context) Props() iter.Seq2[string, Info] {
	return func(yield func(string, Info) bool) {
		for _, b := range c.table.bind[1:] {
			if !b.state && !yield(b.name, c.info(b)) {
				return
			}
		}
	}
}

// info describes a property at this moment.
func (c *Context) info(b *binding) Info {
	c.mu.Lock()
	out, a := c.slots[b.slot].Load(), c.attemptOf(b)
	c.mu.Unlock()
	info := Info{Private: b.private}
	switch {
	case out == nil && a != nil:
		info.State = Resolving
		return info
	case out == nil:
		return info
	case out.set:
		info.State = Assigned
	case out.err != nil:
		info.State = Failed
	default:
		info.State = Resolved
	}
	info.Began, info.Took, info.Err, info.pcs = out.began, out.took, out.err, out.pcs
	info.Waited, info.Asked = time.Duration(out.waited.Load()), int(out.asked.Load())
	if out.by != nil {
		info.By = out.by.name
	}
	return info
}

// Caller returns file:line of the property's first reader, outside of the packages that read properties for a caller. It
// is "" without [Options.Callers], or if net/http called such a package, as for the properties that a route prefetches.
func (info *Info) Caller() string {
	if len(info.pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(info.pcs)
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "net/http.") || !more:
			return ""
		case !ownFunction(f.Function):
			return f.File + ":" + strconv.Itoa(f.Line)
		}
	}
}

// ownFunction reports whether a function belongs to one of the packages that read properties for a caller.
func ownFunction(name string) bool {
	rest, own := strings.CutPrefix(name, "github.com/lazyreq/lazyreq/")
	pkg, _, _ := strings.Cut(rest, ".")
	switch pkg {
	case "lazy", "reqctx", "params", "session", "ratelimit", "server":
		return own
	default:
		return false
	}
}
