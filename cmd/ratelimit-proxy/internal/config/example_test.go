package config_test

import (
	"fmt"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// Errors have the file, line and column, and the field.
func ExampleParse() {
	c, err := config.Parse("proxy.yaml", []byte(`
upstreams: {main: {url: http://127.0.0.1:9000}}
rules:
  - name: search
    key: "{client.ip}"
    limit: 10/60s
`))
	fmt.Println(c.Rules[0].Limit, err)

	c, err = config.Parse("proxy.yaml", []byte(`
upstreams: {main: {url: http://127.0.0.1:9000}}
rules:
  - {name: search, key: client.ip, limit: 10/60s}
`))
	if err == nil {
		_, err = c.Resolve()
	}
	fmt.Println(err)
	// Output:
	// 10/1m0s <nil>
	// proxy.yaml:4:25: rules[0].key: "client.ip" is the same for all requests, want a value such as {client.ip} in it
}
