package proxy

import "sync"

// buffers are what bodies are copied with.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type bufferPool struct{ pool sync.Pool }

// Get is for httputil.ReverseProxy.
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[32 << 10]byte)[:] }

// Put is for httputil.ReverseProxy.
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
