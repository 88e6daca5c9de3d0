package inspect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Page is an [Inspector]'s page on a listener of its own.
type Page struct {
	// URL is where the page is, with the token after the "#", which browsers keep to themselves.
	URL string

	server *http.Server
	done   chan error
	stop   func() bool
}

// Listen serves in's page at addr, such as "127.0.0.1:6060", until ctx ends or Close is called.
// It returns an error if addr cannot be listened on, or is not a loopback address and
// Options.InsecureAllowRemote is not set.
func Listen(ctx context.Context, addr string, in *Inspector) (*Page, error) {
	if !in.opts.InsecureAllowRemote && !isLoopback(addr) {
		return nil, fmt.Errorf("inspect: %q is not a loopback address; Options.InsecureAllowRemote allows it", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &Page{
		URL:    "http://" + l.Addr().String() + "/#token=" + in.opts.Token,
		server: &http.Server{Handler: in, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10},
		done:   make(chan error, 1),
	}
	p.stop = context.AfterFunc(ctx, func() { _ = p.server.Close() })
	go func() { p.done <- p.server.Serve(l) }()
	return p, nil
}

// Close ends the page, and waits until its port is free. Call it once.
func (p *Page) Close() error {
	p.stop()
	err := p.server.Close()
	<-p.done
	return err
}
