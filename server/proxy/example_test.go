package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/lazyreq/lazyreq/server/proxy"
	"github.com/lazyreq/lazyreq/server/proxy/config"
)

// A proxy in front of a server allows each client two requests in a minute.
func ExampleNew() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer upstream.Close()

	c, err := config.Parse("proxy.yaml", []byte(`
upstreams: {main: {url: '`+upstream.URL+`'}}
rules: [{name: limit, key: '{client.ip}', limit: 2/60s}]
`))
	if err != nil {
		log.Fatal(err)
	}
	p, err := proxy.New(c, proxy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	for range 3 {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"), w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 1 "limit";q=2;w=60
	// 200 0 "limit";q=2;w=60
	// 429 0 "limit";q=2;w=60
}
