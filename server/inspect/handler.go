package inspect

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var files embed.FS

var pageFiles, _ = fs.Sub(files, "page") // fails only for an invalid name

// policy lets the page load only its own files, forbids inline scripts and styles, and prevents the use of strings as
// markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP serves the page. It can be mounted at any path that ends in a slash, with [http.StripPrefix]. The files
// of the page contain no data. snapshot.json and request.json need the token as Authorization: Bearer.
func (in *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	switch {
	case !in.opts.InsecureAllowRemote && !isLoopback(r.RemoteAddr):
		http.Error(w, "The inspector answers only clients on the same machine.", http.StatusForbidden)
	case !in.knownHost(r.Host):
		http.Error(w, "The inspector is not reachable by this host name. Options.Hosts adds one.", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Only GET and HEAD are allowed.", http.StatusMethodNotAllowed)
	case name == "snapshot.json" || name == "request.json":
		in.serveData(w, r, name)
	default:
		http.FileServerFS(pageFiles).ServeHTTP(w, r)
	}
}

func (in *Inspector) serveData(w http.ResponseWriter, r *http.Request, name string) {
	if !in.authorized(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="lazyreq inspector"`)
		http.Error(w, "The token is missing or wrong.", http.StatusUnauthorized)
		return
	}
	var body []byte
	var err error
	if name == "snapshot.json" {
		body, err = json.Marshal(in.snapshot(filterOf(r)))
	} else {
		id, _ := strconv.ParseUint(r.URL.Query().Get("id"), 10, 64)
		d, found := in.details(id)
		if !found {
			http.Error(w, "This request is no longer kept.", http.StatusNotFound)
			return
		}
		body, err = json.Marshal(d)
	}
	if err != nil {
		http.Error(w, "The data cannot be encoded.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// filterOf returns the filter of a query. Unknown values select all.
func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	f := filter{route: q.Get("route")}
	if n, err := strconv.Atoi(q.Get("status")); err == nil && n >= 1 && n <= 5 {
		f.status = n
	}
	if kind := q.Get("kind"); slices.Contains([]string{"slow", "failed", "denied"}, kind) {
		f.kind = kind
	}
	return f
}

// authorized reports whether r has the token. It compares digests, so that the duration depends neither on the
// content nor on the length.
func (in *Inspector) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(in.opts.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// knownHost reports whether the page may be requested with this Host.
func (in *Inspector) knownHost(host string) bool {
	return isLoopback(host) || slices.ContainsFunc(in.opts.Hosts, func(h string) bool { return strings.EqualFold(h, hostName(host)) })
}

// isLoopback reports whether a host, with or without a port, is localhost or a loopback address.
func isLoopback(host string) bool {
	name := hostName(host)
	addr, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// hostName returns a host without its port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// Page is the page of an [Inspector] on its own listener.
type Page struct {
	// URL is the address of the page. It has the token after the "#", which browsers do not send.
	URL string

	server *http.Server
	done   chan error
	stop   func() bool
}

// Listen serves the page of in at addr, such as "127.0.0.1:6060", until ctx ends or Close is called. It returns an
// error if it cannot listen on addr, or if addr is not a loopback address and Options.InsecureAllowRemote is not set.
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

// Close ends the page and waits until its port is free. Call it once.
func (p *Page) Close() error {
	p.stop()
	err := p.server.Close()
	<-p.done
	return err
}
