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

// errNotReturned is what an observer is told when Resolve panicked or ended its
// goroutine.
var errNotReturned = errors.New("reqctx: Resolve did not return")

// Observer sees each resolution, on the goroutine that it runs on. Its methods
// are called concurrently and must not block. Handles are not observed.
type Observer interface {
	// ResolveStart is called before Resolve, which gets the context that it
	// returns: ctx or one derived from it.
	ResolveStart(ctx context.Context, name string) context.Context
	// ResolveEnd is called after Resolve with that context.
	ResolveEnd(ctx context.Context, name string, took time.Duration, err error)
}

// State is how far a property has come.
type State uint8

// The states of a property.
const (
	Unused    State = iota // nobody has asked for it
	Resolving              // it is being resolved now
	Resolved               // it has a value
	Failed                 // it has an error, or a panic
	Assigned               // it has a value that was set
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"unused", "resolving", "resolved", "failed", "assigned"}[s]
}

// Info is what became of a property.
type Info struct {
	State  State
	Handle bool          // it is a handle: not measured
	Preset bool          // its value came by [Preset]; it is a handle then
	Began  time.Time     // when its resolution began
	Took   time.Duration // how long Resolve ran
	Waited time.Duration // how long readers waited for it, all together
	Asked  int           // readers that did not find it there
	By     string        // the property whose resolution asked first; "" for the handler
	Caller string        // file:line of who asked first, if Options.Callers is set
	Err    error
}

// Props returns all properties of the request, in the order in which they were provided,
// with the state of each at this moment. After [Context.Finish] all are [Unused]; an
// OnClose function that was registered before all others sees the whole request.
func (c *Context) Props() iter.Seq2[string, Info] {
	return func(yield func(string, Info) bool) {
		for _, b := range c.table.bind[1:] {
			if !yield(b.name, c.info(b)) {
				return
			}
		}
	}
}

func (c *Context) info(b *binding) Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := Info{Handle: b.handle, Preset: b.preset}
	out := c.slots[b.slot].Load()
	if out == nil {
		if *c.attemptOf(b) != nil {
			info.State = Resolving
		}
		return info
	}
	switch {
	case out.source == wasSet:
		info.State = Assigned
	case out.err != nil:
		info.State = Failed
	default:
		info.State = Resolved
	}
	info.Began, info.Took, info.Err = out.began, out.took, out.err
	info.Waited, info.Asked = time.Duration(out.waited.Load()), int(out.asked.Load())
	if out.by != nil {
		info.By = out.by.name
	}
	info.Caller = out.pcs.String()
	return info
}

// resolvedBy returns the property that f resolves, or nil.
func resolvedBy(f *lazy.Flight) *binding {
	if f == nil {
		return nil
	}
	if a, ok := f.Work().(*attempt); ok {
		return a.b
	}
	return nil
}

// callerStack is where a property was asked for: enough frames to get out of
// this package.
type callerStack struct {
	pcs [10]uintptr
	n   int
}

func callers() *callerStack {
	s := new(callerStack)
	s.n = runtime.Callers(2, s.pcs[:])
	return s
}

// String returns file:line of the first frame outside of this package.
func (s *callerStack) String() string {
	if s == nil {
		return ""
	}
	frames := runtime.CallersFrames(s.pcs[:s.n])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/lazyreq/lazyreq/reqctx.") {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}
