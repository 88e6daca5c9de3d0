package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEntriesThatNeverMatch checks that an entry that no request can match is an error.
func TestEntriesThatNeverMatch(t *testing.T) {
	for match, want := range map[string]string{
		`methods: ["GET,POST"]`:                       `methods[0]: "GET,POST" is not a method`,
		`methods: ["*"]`:                              `methods[0]: "*" is not a method`,
		`methods: [GET, "POST "]`:                     `methods[1]: "POST " is not a method`,
		`methods: [CONNECT]`:                          `methods[0]: "CONNECT" never matches`,
		`hosts: ["*.[::1]"]`:                          `hosts[0]: "*.[::1]" is not a host`,
		`hosts: ["*"]`:                                `hosts[0]: "*" is not a host`,
		`paths: ["/my%20files/**"]`:                   `paths[0]: "/my%20files/**" never matches: paths are compared decoded, so write the character itself for %20`,
		`paths: ["/a", "/%2e"]`:                       `paths[1]: "/%2e" never matches`,
		`paths: ["/search?q=x"]`:                      `paths[0]: "/search?q=x" never matches: the query is not part of the path`,
		`paths: ["/a\n"]`:                             `paths[0]: "/a\n" never matches: paths with control`,
		`headers: {X-Plan: " gold"}`:                  `headers.X-Plan: " gold" never matches: a header's value doesn't begin or end with a space`,
		`headers: {X-Plan: "a\nb"}`:                   `headers.X-Plan: "a\nb" never matches: a header's value has no control`,
		`headers: {trailer: x}`:                       `headers.trailer: the header trailer can't be matched`,
		`headers: {Transfer-Encoding: "*"}`:           `headers.Transfer-Encoding: the header Transfer-Encoding can't be matched`,
		`headers: {Upgrade: h2c}`:                     `headers.Upgrade: "h2c" never matches: only upgrades to websocket`,
		`headers: {Upgrade: WebSocket}`:               ``,
		`headers: {content-length: abc}`:              `headers.content-length: "abc" never matches: it is not a number`,
		`headers: {Content-Length: "0"}`:              ``,
		`headers: {X-Plan: gold, x-plan: silver}`:     `headers.x-plan: is the same header as another, X-Plan`,
		`headers: {x-a: "1", X-B: "2", X-A: "1"}`:     `headers.x-a: is the same header as another, X-A`,
		`headers: {X-Plan: gold}, paths: ["/100%/%"]`: ``,
		`methods: [M-SEARCH], paths: ["/a b/*/c#d"]`:  ``,
	} {
		for _, format := range []string{
			"routes: [{upstream: main, match: {%s}}]", "rules: [{name: a, limit: 1/s, match: {%s}}]",
			"rules: [{name: a, limit: 1/s, tiers: [{limit: 1/s, match: {%s}}]}]",
		} {
			err := checkLine(t, fmt.Sprintf(format, match))
			if want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, want)
			require.True(t, strings.HasPrefix(err.Error(), "p.yaml:2:"), "%v", err)
			require.NotContains(t, err.Error(), "\n")
		}
	}
	for line, want := range map[string]string{
		`status: {path: /my status}`:                                `status.path: "/my status", want a path`,
		`status: {path: "/status?x"}`:                               `status.path: "/status?x", want a path`,
		`status: {path: "/s#x"}`:                                    `status.path: "/s#x", want a path`,
		`status: {token: " t"}`:                                     `status.token: never matches`,
		"status:\n  token: |\n    t":                                `status.token: never matches`,
		`rules: [{name: a, limit: 1/s, key: "{header.Trailer}"}]`:   `rules[0].key: the header Trailer can't`,
		`rules: [{name: a, limit: 1/s, key: "{header.Host}"}]`:      `rules[0].key: the header Host can't`,
		`rules: [{name: a, limit: 1/s, key: "{query.a%20b}"}]`:      `rules[0].key: {query.a%20b} has an escape`,
		`rules: [{name: a, limit: 1/s, cost: "{header.trailer}"}]`:  `rules[0].cost: the header Trailer can't`,
		`status: {allow: ["10.0.0.0/8", "64:ff9b::/96"]}`:           `status.allow[1]: 64:ff9b::/96 is the network of all IPv4`,
		`rules: [{name: a, limit: 1/s, allow: ["64:ff9b::/96"]}]`:   `rules[0].allow[0]: 64:ff9b::/96 is the network of all IPv4`,
		`rules: [{name: a, limit: 1/s, deny: ["64:FF9B:0::1/96"]}]`: `rules[0].deny[0]: 64:ff9b::1/96 is the network of all IPv4`,
	} {
		require.ErrorContains(t, checkLine(t, line), want)
	}
	require.NoError(t, checkLine(t, `rules: [{name: a, limit: 1/s, deny: ["64:ff9b::/104", "64:ff9b::1", "64:ff9b::/64", "::ffff:0:0/96"]}]`))
}

// TestUnreachableEntries checks that a rule, a route or a tier that no request can reach is an error.
func TestUnreachableEntries(t *testing.T) {
	const last = "rules: [{name: a, limit: 1/s, last: true, match: {%s}}, {name: b, limit: 1/s, match: {%s}}]"
	const routes = "routes: [{upstream: main, match: {%s}}, {upstream: other, match: {%s}}]"
	const tiers = "rules: [{name: a, limit: 1/s, tiers: [{limit: 1/s, match: {%s}}, {limit: 2/s, match: {%s}, keys: [k]}]}]"
	for _, c := range []struct {
		first, second string
		covers        bool
	}{
		{"", "", true},
		{"", "paths: [/a], methods: [GET]", true},
		{"paths: ['/**']", "", true},
		{"paths: ['/a/**']", "", false},
		{"paths: ['/a/**']", "paths: [/a]", true},
		{"paths: ['/a/**']", "paths: [/a/b/, '/a/*/c', '/a/b/**']", true},
		{"paths: ['/a/**']", "paths: [/a/b, /b]", false},
		{"paths: ['/a/**', /b]", "paths: [/a/b, /b]", true},
		{"paths: ['/a/*']", "paths: ['/a/**']", false},
		{"paths: ['/a/*/**']", "paths: ['/a/**']", false},
		{"paths: ['/a/*/**']", "paths: ['/a/b/**']", true},
		{"paths: [/a/b]", "paths: ['/a/*']", false},
		{"paths: ['/*/b']", "paths: [/a/b/]", true},
		{"methods: [GET, HEAD]", "methods: [HEAD], hosts: [a]", true},
		{"methods: [GET]", "methods: [GET, HEAD]", false},
		{"methods: [GET]", "", false},
		{"hosts: [A.example.com.]", "hosts: [a.example.com]", true},
		{"hosts: ['*.example.com']", "hosts: [a.b.example.com, '*.c.example.com', '*.EXAMPLE.com']", true},
		{"hosts: ['*.example.com']", "hosts: [example.com]", false},
		{"headers: {X: '*'}", "headers: {x: a}", true},
		{"headers: {X: a}", "headers: {X: '*'}", false},
		{"headers: {X: a}", "headers: {X: a, Y: b}", true},
		{"headers: {X: a, Y: b}", "headers: {X: a}", false},
	} {
		for format, want := range map[string]string{
			last:   "rules[1]: is never used: rules[0] is last and matches all its requests",
			routes: "routes[1]: is never used: routes[0] matches all its requests",
			tiers:  "rules[0].tiers[1]: is never used: rules[0].tiers[0] matches all its requests",
		} {
			err := checkLine(t, fmt.Sprintf(format, c.first, c.second))
			if c.covers {
				require.ErrorContains(t, err, want, "%+v", c)
			} else {
				require.NoError(t, err, "%+v", c)
			}
		}
	}
	require.NoError(t, checkLine(t, "rules: [{name: a, limit: 1/s}, {name: b, limit: 1/m}]"), "both of them charge")

	const keys = "rules: [{name: a, limit: 1/s, deny: [%s], tiers: [{keys: [k, l, k], limit: 1/s, match: {%s}}, {keys: [m, l], limit: 2/s}]}]"
	const used = `rules[0].tiers[1].keys[%d]: %q is never used: deny or an earlier tier has it`
	require.ErrorContains(t, checkLine(t, fmt.Sprintf(keys, "", "")), fmt.Sprintf(used, 1, "l"))
	require.ErrorContains(t, checkLine(t, fmt.Sprintf(keys, "m", "paths: [/x]")), fmt.Sprintf(used, 0, "m"))
	require.NoError(t, checkLine(t, fmt.Sprintf(keys, "x", "paths: [/x]")))

	const methods = "rules: [{name: a, limit: 1/s, match: {methods: [%s]}, tiers: [{limit: 2/s, match: {methods: [%s]}}]}]"
	require.ErrorContains(t, checkLine(t, fmt.Sprintf(methods, "POST, PUT", "GET")), "rules[0].tiers[0]: is never used: the rule doesn't match its methods")
	require.NoError(t, checkLine(t, fmt.Sprintf(methods, "POST, PUT", "GET, PUT")))
}

// TestListEntries checks that an entry of a list has to be a value of the key, and that the key has to be a single value.
func TestListEntries(t *testing.T) {
	const (
		host    = "{host}"
		several = "it can only be a value if the key is a single one"
	)
	for _, c := range []struct{ key, entry, want string }{
		{host, "example.com", ""},
		{host, "example.com:80", "it is not a host without a port"},
		{host, "*.example.com", "it is not a host without a port"},
		{"{path}", "/a//b/../c", ""},
		{"{path}", "a", "it does not begin with /"},
		{"{path}", "/a%20b", "it never matches: paths are compared decoded"},
		{"{path}", "/a?b", "it never matches: the query"},
		{"{path}", "/a;b", "it never matches: parameters"},
		{"{path}", "/a/**", "it has a *, but is not a pattern"},
		{"{method}", "get", "it is not a method"},
		{"{header.X}", " a", "it never matches: a header's value doesn't begin or end with a space"},
		{"{header.X}", "a\\nb", "it never matches: a header's value has no control characters"},
		{"{query.k}", "a\\0b", "it never matches: it contains NUL"},
		{"{query.k}", " a+b ", ""},
		{"{cookie.k}", " ", "it is empty"},
		{"{client.ip}", "2001:DB8::1", ""},
		{"key-{header.X}", "key-a", several},
		{"{host} {header.Authorization}", "x Basic QQ==", several},
	} {
		for _, list := range []string{"allow: [%q]", "deny: [%q]", "tiers: [{limit: 1/s, keys: [%q]}]"} {
			entry := fmt.Sprintf(strings.ReplaceAll(list, "%q", `"%s"`), c.entry)
			err := checkLine(t, fmt.Sprintf("rules: [{name: a, limit: 1/s, key: %q, %s}]", c.key, entry))
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want, "%s: %s", c.key, entry)
			}
		}
	}
	for _, entry := range []string{"10.0.0.256", "10.0.0.1/33", "2001:db8::/129", "10.0.0.0/255.0.0.0", "fe80::%eth0/64"} {
		require.ErrorContains(t, checkLine(t, fmt.Sprintf("rules: [{name: a, limit: 1/s, deny: [%q]}]", entry)), "it looks like a mistyped address")
	}
}

// checkLine returns the errors of a configuration that consists of two upstreams and line.
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

// TestZeroAndEmptyValues checks that an explicit zero or empty value is an error if the default would replace it.
func TestZeroAndEmptyValues(t *testing.T) {
	for line, field := range map[string]string{
		"timeouts: {stall: 0s}": "timeouts.stall",
		"replicas: 0":           "replicas",
		"redis: ''":             "redis",
		"listen: []":            "listen",
		"listen: [{address: ':1', cert: '', key: ''}]": "listen[0].cert",
		"routes: []": "routes",
		"rules: [{name: a, limit: 1/s, key: ''}]":                    "rules[0].key",
		"rules: [{name: a, limit: 1/s, match: {paths: []}}]":         "rules[0].match.paths",
		"rules: [{name: a, limit: 1/s, match: {methods: []}}]":       "rules[0].match.methods",
		"rules: [{name: a, limit: 1/s, match: {hosts: []}}]":         "rules[0].match.hosts",
		"rules: [{name: a, limit: 1/s, match: {headers: {}}}]":       "rules[0].match.headers",
		"rules: [{name: a, limit: 1/s, tiers: [{keys: []}]}]":        "rules[0].tiers[0].keys",
		"rules: [{name: a, limits: [{algorithm: gcra, burst: 0}]}]":  "rules[0].limits[0].burst",
		"rules: [{name: a, limits: [{block: {after: 0, for: 1s}}]}]": "rules[0].limits[0].block.after",
	} {
		require.ErrorContains(t, checkLine(t, line), field+": is empty or zero: set another value, or omit the field for its default")
	}
	require.NoError(t, checkLine(t, "trusted_proxies: []\nheaders: {underscores: false}\nrules: [{name: a, limit: 1/s, match: {}, allow: [], deny: [], tiers: [], shadow: false}]"),
		"these are what they say")
}

// TestEncodings checks that a file may begin with a byte order mark, which some editors write, and that other files
// must be UTF-8.
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
