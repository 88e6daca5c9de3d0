package reqctx

// Prefetch begins to resolve properties that the handler is going to read, each on a goroutine of
// its own, and returns at once. They start together, so that their calls of a store usually share
// a round trip. Properties that are resolved, being resolved, set or preset are left alone.
//
// A prefetched property counts as read: if it is resolved when the header goes out, it commits and
// adds its Vary fields. Its error is returned to its readers. When the request closes, a resolution
// that is still running is cancelled, and Finish waits for it.
//
// Prefetch returns an error, and begins nothing, if the request has no such property
// ([ErrNoProperty]), if a property does no I/O ([ErrNoPrefetch]), or if the request is closing
// ([ErrFinished]).
func (c *Context) Prefetch(names ...string) error {
	props, err := lookupAll(c, names)
	if err != nil {
		return err
	}
	for _, p := range props {
		if p.b.state && !p.b.preset {
			return named(ErrNoPrefetch, p.b.name)
		}
	}
	return startAll(c.handlerContext(), props) // for the parents of spans
}

// CheckPrefetch returns the error that [Context.Prefetch] would return for these names.
func (reg *Registry) CheckPrefetch(names ...string) error {
	t := reg.tab.Load()
	for _, name := range names {
		switch b := t.public(name); {
		case b == nil:
			return t.unknown(name)
		case b.state:
			return named(ErrNoPrefetch, name)
		}
	}
	return nil
}
