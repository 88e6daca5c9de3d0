// Proxy-nginx is an application behind two proxies: nginx, and behind it ratelimit-proxy. Each client may
// send ten requests a minute. The application gets the client's address. Another nginx can take the
// application's place.
//
//	nginx -p /tmp -e stderr -c "$PWD/examples/proxy-nginx/front.conf"
//	go run ./cmd/ratelimit-proxy --config examples/proxy-nginx/proxy.yaml
//	go run ./examples/proxy-nginx
//
// each in a terminal of its own. In place of the last:
//
//	nginx -p /tmp -e stderr -c "$PWD/examples/proxy-nginx/behind.conf"
//
// Then, as two clients, of which the second writes an address of its own (Linux only):
//
//	curl -i http://127.0.0.1:8080
//	curl -i --interface 127.0.0.2 -H 'X-Forwarded-For: 192.0.2.9' http://127.0.0.1:8080
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/netip"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9000", "`host:port` to listen on, the upstream of proxy.yaml")
	flag.Parse()
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

// newServer returns an application that finds the addresses of clients behind both proxies. A policy of the
// application could use the Key method of the same options.
func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{})
	if err != nil {
		return nil, err
	}
	client, err := ratelimit.IPOptions{
		// Both proxies run on this machine. If they run on other machines, list their addresses here, but never a
		// network that also contains clients.
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Header:         "X-Forwarded-For",
	}.Client()
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		_, err := fmt.Fprintf(w, "client: %v, X-Forwarded-For: %s\n",
			client(req, req.Request), req.Header.Get("X-Forwarded-For"))
		return err
	})
	return srv, nil
}
