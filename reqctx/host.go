package reqctx

import (
	"context"
	"sync/atomic"
)

// Host is a [Context] with the methods that a server needs to begin, commit and end a request. Handlers get only
// &h.Context. [Key.Get] is fastest with this context.
//
// Init and SetRemoteAddr must not be called concurrently with anything else.
type Host struct{ Context }

// New returns a request that begins now, with the properties that reg has now and the presets of ctx.
func New(ctx context.Context, reg *Registry) *Host {
	h := new(Host)
	h.Init(ctx, reg)
	return h
}

// Init is [New] for a Host that is part of another struct. h must be zero.
func (h *Host) Init(ctx context.Context, reg *Registry) {
	c := &h.Context
	c.Context = ctx
	c.table = reg.tab.Load()
	if n := len(c.table.bind); n <= inlineSlots {
		c.slots = c.inline[:n]
	} else {
		c.slots = make([]atomic.Pointer[outcome], n)
	}
}

// SetRemoteAddr sets the address of the peer of a request that is not an HTTP request.
func (h *Host) SetRemoteAddr(addr string) { h.peer = addr }
