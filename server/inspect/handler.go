package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed page
var files embed.FS

// contentTypes are the types of the page's files.
var contentTypes = map[string]string{
	"index.html": "text/html; charset=utf-8",
	"app.css":    "text/css; charset=utf-8",
	"app.js":     "text/javascript; charset=utf-8",
	"icon.svg":   "image/svg+xml",
}

// policy lets the page load its own files only, run no inline script or style, and make no
// markup of strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP serves the page. It can be mounted anywhere, with [http.StripPrefix] for a path that
// ends in a slash. The page's files are free of data; snapshot.json and request.json need the
// token, as Authorization: Bearer.
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
		serveFile(w, name)
	}
}

func serveFile(w http.ResponseWriter, name string) {
	if name == "" {
		name = "index.html"
	}
	kind, found := contentTypes[name]
	if !found {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	body, err := files.ReadFile("page/" + name)
	if err != nil {
		http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body)
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
		body, err = in.cache.get(in, filterOf(r))
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

// authorized reports whether r has the token. It compares digests, so that the time depends on
// neither content nor length.
func (in *Inspector) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(in.opts.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// knownHost reports whether the page may be requested by this Host.
func (in *Inspector) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(in.opts.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// isLoopback reports whether a host:port is on this machine.
func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
