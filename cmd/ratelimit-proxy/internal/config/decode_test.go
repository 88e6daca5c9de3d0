package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkLine returns the errors of a configuration with one more line.
func checkLine(t *testing.T, line string) error {
	t.Helper()
	c, err := Parse("p.yaml", []byte("upstreams: {main: {url: http://a}, other: {url: http://b}}\n"+line+"\n"))
	if err != nil {
		return err
	}
	if len(c.Routes) == 0 {
		c.Routes = []Route{{Upstream: "main"}}
	}
	return check(c)
}

// A value that is written, but means the default, is an error.
func TestZeroAndEmptyValues(t *testing.T) {
	for line, field := range map[string]string{
		"timeouts: {stall: 0s}":   "timeouts.stall",
		"timeouts: {header: 0ms}": "timeouts.header",
		"redis_timeout: 0s":       "redis_timeout",
		"replicas: 0":             "replicas",
		"redis: ''":               "redis",
		"admin: \"\"":             "admin",
		"client_header: ''":       "client_header",
		"status: {token: ''}":     "status.token",
		"status: {path: ''}":      "status.path",
		"listen: []":              "listen",
		"listen: [{address: ':1', cert: '', key: ''}]": "listen[0].cert",
		"routes: []": "routes",
		"rules: [{name: a, limit: 1/s, key: ''}]":                    "rules[0].key",
		"rules: [{name: a, limit: 1/s, cost: ''}]":                   "rules[0].cost",
		"rules: [{name: a, limit: 1/s, missing: ''}]":                "rules[0].missing",
		"rules: [{name: a, limit: 1/s, on_error: ''}]":               "rules[0].on_error",
		"rules: [{name: a, limit: 1/s, match: {paths: []}}]":         "rules[0].match.paths",
		"rules: [{name: a, limit: 1/s, match: {methods: []}}]":       "rules[0].match.methods",
		"rules: [{name: a, limit: 1/s, match: {hosts: []}}]":         "rules[0].match.hosts",
		"rules: [{name: a, limit: 1/s, match: {headers: {}}}]":       "rules[0].match.headers",
		"rules: [{name: a, limit: 1/s, tiers: [{keys: []}]}]":        "rules[0].tiers[0].keys",
		"rules: [{name: a, limits: [{algorithm: gcra, burst: 0}]}]":  "rules[0].limits[0].burst",
		"rules: [{name: a, limits: [{interval: 0s}]}]":               "rules[0].limits[0].interval",
		"rules: [{name: a, limits: [{algorithm: ''}]}]":              "rules[0].limits[0].algorithm",
		"rules: [{name: a, limits: [{block: {after: 0, for: 1s}}]}]": "rules[0].limits[0].block.after",
	} {
		require.ErrorContains(t, checkLine(t, line), field+": is empty or zero: set another value, or omit the field for its default")
	}
	for _, field := range []string{"host: ''", "http2: ''", "ca: ''", "response_timeout: 0s", "max_connections: 0", "proxy_protocol: 0"} {
		name, _, _ := strings.Cut(field, ":")
		_, err := Parse("p.yaml", []byte("upstreams: {main: {url: http://a, "+field+"}}"))
		require.ErrorContains(t, err, "p.yaml:1:", field)
		require.ErrorContains(t, err, "upstreams.main."+name+": is empty or zero", field)
	}
	require.NoError(t, checkLine(t, "trusted_proxies: []\nheaders: {forwarded: false}\nrules: [{name: a, limit: 1/s, match: {}, allow: [], deny: [], tiers: [], shadow: false}]"),
		"these are what they say")
}

// Some editors put a byte order mark at the beginning of a file.
func TestEncodings(t *testing.T) {
	const text = "upstreams: {main: {url: http://a}}\n"
	c, err := Parse("p.yaml", []byte("\ufeff"+text))
	require.NoError(t, err)
	require.NoError(t, check(c))
	_, err = Parse("p.yaml", []byte("\ufeff"+text+"nonsense: 1\n"))
	require.ErrorContains(t, err, `p.yaml:2:1: unknown field "nonsense"`)
	for _, other := range []string{"\xff\xfeu\x00p\x00", text + "rules: [{name: a, limit: 1/s, deny: [k\xe9y]}]"} {
		_, err = Parse("p.yaml", []byte(other))
		require.EqualError(t, err, "p.yaml: is not text in UTF-8")
	}
}
