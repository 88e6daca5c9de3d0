package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// parse parses a configuration that must be valid YAML.
func parse(t *testing.T, text string) Config {
	t.Helper()
	c, err := Parse("proxy.yaml", []byte(text))
	require.NoError(t, err)
	return c
}

// check returns all errors of a configuration and of its certificates.
func check(c Config) error {
	_, err := c.Resolve()
	return errors.Join(err, c.CheckFiles())
}

func rateError(text string) error {
	_, err := ParseRate(text)
	return err
}

func sizeError(text string) error {
	_, err := parseSize(text)
	return err
}

func TestErrorPositions(t *testing.T) {
	const ok = "upstreams:\n  main: {url: http://127.0.0.1:9000}\n"
	for _, c := range []struct{ yaml, want string }{
		{ok + "nonsense: 1\n", `p.yaml:3:1: unknown field "nonsense"`},
		{ok + "rules:\n  - name: a\n    limit: 10\n", `p.yaml:5:12: rules[0].limit: "10" is not a rate`},
		{ok + "rules:\n  - name: a\n    limit: 10/x\n", `want one such as 60s, h, 7d or month`},
		{ok + "rules:\n  - name: a\n    limit: 0/s\n", `is not a whole number above 0`},
		{ok + "rules:\n  - name: a\n    limit: 1/day in Mars/Phobos\n", `p.yaml:5:12: rules[0].limit: "1/day in Mars/Phobos" is not a rate: "Mars/Phobos" is not a time zone`},
		{ok + "rules:\n  - name: a\n    limits: [{rate: 1/day, algorithm: gcra}]\n", `rules[0].limits[0]: has a rate per day, which only a window has`},
		{ok + "rules:\n  - name: a\n    colour: red\n", `p.yaml:5:5: rules[0]: unknown field "colour", want one of name, match, key, `},
		{ok + "listen: [1, 2\n", `p.yaml:3:`},
		{ok + "rules:\n  - name: a\n    name: b\n", `p.yaml:5:5: `},
		{ok + "rules:\n  - name: a\n", `p.yaml:4:9: rules[0]: has no limit`},
		{ok + "rules:\n  - limit: 1/s\n", `rules[0].name: is ""`},
		{ok + "rules:\n  - {name: a b, limit: 1/s}\n", `p.yaml:4:12: rules[0].name: is "a b"`},
		{ok + "rules:\n  - {name: a, limit: 1/s}\n  - {name: a, limit: 1/s}\n", `p.yaml:5:12: rules[1].name: is also the name of another`},
		{ok + "rules:\n  - {name: a, limit: 1/s, key: '{client}'}\n", `rules[0].key: {client} is unknown`},
		{ok + "rules:\n  - {name: a, limit: 1/s, key: 'x'}\n", `rules[0].key: "x" is the same for all`},
		{ok + "rules:\n  - {name: a, limit: 1/s, key: '{path'}\n", `rules[0].key: "{path" has no }`},
		{ok + "rules:\n  - {name: a, limit: 1/s, missing: x}\n", `rules[0].missing: "x", want address, reject, skip`},
		{ok + "rules:\n  - {name: a, limit: 1/s, on_error: x}\n", `rules[0].on_error: "x", want open, closed, local`},
		{ok + "rules:\n  - {name: a, limit: 1/s, cost: 0}\n", `rules[0].cost: "0", want`},
		{ok + "rules:\n  - {name: a, limit: 1/s, cost: 1.5}\n", `rules[0].cost: "1.5", want a whole number above 0 or {header.NAME}`},
		{ok + "rules:\n  - {name: a, limit: 1/s, cost: 2}\n", `a request costs 2: none would ever pass`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: {}}\n", `p.yaml:4:38: rules[0].charge_if.status: is [], want statuses from 200 to 599, such as [401, 403]`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: {status: []}}\n", `rules[0].charge_if.status: is [], want`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: {status: [401, 101]}}\n", `rules[0].charge_if.status: is [401 101], want statuses`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: {status: [4xx]}}\n", `rules[0].charge_if.status[0]: "4xx": want a whole number`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: {status: 401}}\n", `rules[0].charge_if.status: "401": want a list`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: [401]}\n", `rules[0].charge_if: "[": want fields`},
		{ok + "rules:\n  - {name: a, limit: 1/s, charge_if: {method: GET}}\n", `unknown field "method", want one of status`},
		{ok + "rules:\n  - {name: a, limit: 1/s, tiers: [{keys: [b]}]}\n", `rules[0].tiers[0]: has no limit`},
		{ok + "rules:\n  - {name: a, limit: 1/s, limits: [{rate: 1/s}]}\n", `rules[0].limit: is set, and so is limits`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 1/s}, {rate: 2/s}]}\n", `rules[0].limits[1]: has the same name`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 1/s, algorithm: x}]}\n", `rules[0].limits[0]: has the unknown algorithm "x", want window`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 2/s, algorithm: throttle}]}\n", `is a throttle, whose rate must be 1`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 2/s, burst: 2}]}\n", `has a burst, which only a gcra has`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 2/s, interval: 1s}]}\n", `has an interval, which only buckets have`},
		{ok + "rules:\n  - {name: a, limits: [{burst: 2}]}\n", `rules[0].limits[0]: has no rate`},
		{ok + "rules:\n  - {name: a, limits: [{in_flight: -1}]}\n", `rules[0].limits[0]: has in_flight -1, want at least 1`},
		{ok + "rules:\n  - {name: a, limits: [{life: 5s}]}\n", `rules[0].limits[0]: has a life, which only in_flight has`},
		{ok + "rules:\n  - {name: a, limits: [{in_flight: 8, life: -5s}]}\n", `rules[0].limits[0]: life is -5s, want 1µs to`},
		{ok + "rules:\n  - {name: a, limits: [{in_flight: 8, rate: 1/s}]}\n", `has in_flight, so it cannot have a rate,`},
		{ok + "rules:\n  - {name: a, limits: [{in_flight: 8, algorithm: log}]}\n", `has in_flight, so it cannot have a rate,`},
		{ok + "rules:\n  - {name: a, cost: 9, limits: [{in_flight: 8}]}\n", `has a limit of 8, and a request costs 9`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 5/s, block: {after: 2}}]}\n", `rules[0].limits[0]: `},
		{ok + "rules:\n  - {name: a, limit: 1/s, match: {paths: [x]}}\n", `rules[0].match.paths[0]: "x" does not begin with /`},
		{ok + "rules:\n  - {name: a, limit: 1/s, match: {paths: [/x/../y]}}\n", `never matches`},
		{ok + "rules:\n  - {name: a, limit: 1/s, match: {paths: ['/**/y']}}\n", `"**" the last one`},
		{ok + "rules:\n  - {name: a, limit: 1/s, match: {methods: [get]}}\n", `rules[0].match.methods[0]: "get" is not a method`},
		{ok + "rules:\n  - {name: a, limit: 1/s, match: {hosts: ['a:80']}}\n", `rules[0].match.hosts[0]: "a:80" is not a host without`},
		{ok + "trusted_proxies: [x]\n", `p.yaml:3:19: trusted_proxies[0]: "x" is not an address or network`},
		{ok + "trusted_proxies: [0.0.0.0/0]\n", `p.yaml:3:18: trusted_proxies: `},
		{ok + "client_header: X-Real-Ip\n", `p.yaml:3:16: client_header: is "X-Real-Ip", but trusted_proxies is empty`},
		{ok + "client_header: X Y\ntrusted_proxies: [10.0.0.1]\n", `p.yaml:3:16: client_header: "X Y" is not the name of a header`},
		{ok + "listen: ['127.0.0.1']\n", `p.yaml:3:10: listen[0].address: "127.0.0.1" is not an address to listen on`},
		{ok + "listen: [':81', ':81']\n", `listen[1].address: ":81" is also the address of listen[0].address`},
		{ok + "listen: [':81']\nadmin: ':81'\n", `admin: ":81" is also the address of listen[0].address`},
		{ok + "listen: [':']\n", `listen[0].address: ":" is not an address`},
		{ok + "admin: x\n", `p.yaml:3:8: admin: "x" is not an address to listen on`},
		{ok + "listen: [{address: ':1', cert: a}]\n", `listen[0]: needs both cert and key`},
		{ok + "listen: [{address: ':1', cert: /none/c, key: /none/k}]\n", `p.yaml:3:32: listen[0].cert: /none/c, key /none/k: open /none/c`},
		{ok + "---\nadmin: :1\n", `p.yaml: want one document, not 2`},
		{ok + "replicas: many\n", `p.yaml:3:11: replicas: "many": want a whole number`},
		{ok + "max_header_bytes: [1]\n", `p.yaml:3:19: max_header_bytes: "[": want a single value`},
		{ok + "headers: {legacy: true}\n", `p.yaml:3:11: headers: unknown field "legacy", want one of underscores`},
		{ok + "headers: {underscores: maybe}\n", `p.yaml:3:24: headers.underscores: "maybe": want true or false`},
		{ok + "rules: [{name: a, limit: 1/s, response_headers: off}]\n", `p.yaml:3:49: rules[0].response_headers: "off", want draft-10, x-ratelimit, both, none`},
		{ok + "rules: [{name: a, limit: 1/s, response_headers: ''}]\n", `p.yaml:3:49: rules[0].response_headers: is empty or zero`},
		{ok + "client_header: [a]\n", `p.yaml:3:16: client_header: "[": want a single value`},
		{ok + "rules:\n  - {name: a, limit: 1/s, key: {client.ip}}\n", `p.yaml:4:32: rules[0].key: "{": want text: a text that begins with { needs quotes`},
		{ok + "rules:\n  - {name: a, limit: 1/s, key: '{header.a b}'}\n", `rules[0].key: {header.a b} is unknown`},
		{ok + "rules:\n  - {name: a, limit: 1/s, key: '{cookie.a;b}'}\n", `rules[0].key: {cookie.a;b} is unknown`},
		{ok + "rules:\n  - {name: a, limit: 1/s, cost: '{header.}'}\n", `rules[0].cost: "{header.}" doesn't name a header`},
		{ok + "rules:\n  - {name: a, limit: 1/s, match: {headers: {a b: c}}}\n", `p.yaml:4:50: rules[0].match.headers.a b: "a b" is not the name of a header`},
		{ok + "rules:\n  - {name: a, limit: 1/s, allow: [10.0.0.0/33]}\n", `p.yaml:4:35: rules[0].allow[0]: "10.0.0.0/33" is not an address, a network`},
		{ok + "rules:\n  - {name: a, limit: 1/s, deny: [a, 10.0.0.256]}\n", `rules[0].deny[1]: "10.0.0.256" is not an address, a network`},
		{ok + "rules:\n  - {name: a, limit: 1/s, deny: [b], key: '{client.ip}'}\n", `rules[0].deny[0]: "b" is not an address`},
		{ok + "rules:\n  - {name: a, limit: 1/s, tiers: [{keys: [''], limit: 1/s}]}\n", `rules[0].tiers[0].keys[0]: "" is not a value of the key: it is empty`},
		{ok + "rules:\n  - {name: a, limit: 1/s, tiers: [{keys: [10.0.0.0/8], limit: 1/s}], key: '{client.ip}'}\n", `rules[0].tiers[0].keys[0]: "10.0.0.0/8" is not a value of the key: it is not an address`},
		{ok + "rules:\n  - {name: a, limits: [{rate: 1/s, algorithm: gcra, burst: -1}]}\n", `urst is -1, want 1 to`},
		{ok + "status: {path: status}\n", `status.path: "status", want`},
		{ok + "timeouts: {stall: -1s}\n", `timeouts.stall: is -1s`},
		{ok + "timeouts: {stall: soon}\n", `p.yaml:3:19: timeouts.stall: "soon": want a time with its unit`},
		{ok + "timeouts: {stall: 10}\n", `p.yaml:3:19: timeouts.stall: "10": want a time with its unit`},
		{ok + "max_header_bytes: 1GiB\n", `max_header_bytes: is 1073741824`},
		{ok + "max_header_bytes: many\n", `p.yaml:3:19: max_header_bytes: "many" is not a size`},
		{ok + "memory: {max_bytes: 1KiB}\n", `memory.max_bytes: is 1024, want 1048576`},
		{ok + "redis_timeout: -1s\n", `redis_timeout: is -1s`},
		{ok + "redis: http://x\n", `p.yaml:3:8: redis: is not the URL of a Redis, want a URL such as redis://`},
		{ok + "redis: 'redis://:secret@a:b'\n", `redis: is not the URL of a Redis`},
		{ok + "replicas: -1\n", `p.yaml:3:11: replicas: is -1, want 1 to 1048576`},
		{ok + "replicas: 1048577\n", `p.yaml:3:11: replicas: is 1048577`},
		{ok + "trusted_proxies: 10.0.0.1\n", `p.yaml:3:18: trusted_proxies: "10.0.0.1": want a list, such as [a, b]`},
		{ok + "rules: {name: a}\n", `p.yaml:3:8: rules: "{": want a list`},
		{ok + "rules: [a]\n", `p.yaml:3:9: rules[0]: "a": want fields, such as {name: value}`},
		{ok + "timeouts: [a]\n", `p.yaml:3:11: timeouts: "[": want fields`},
		{ok + "routes: [{upstream: other}]\n", `p.yaml:3:21: routes[0].upstream: there is no upstream "other"`},
		{"upstreams:\n  a: {url: http://a}\n  b: {url: http://b}\n", `routes: there are none, but more than one upstream`},
		{"upstreams:\n  a: {url: ftp://a}\n", `p.yaml:2:12: upstreams.a.url: "ftp://a" is not the address`},
		{"upstreams:\n  a: {url: '127.0.0.1:9000'}\n", `upstreams.a.url: is not the address of a server, want one such as http://127.0.0.1:9000`},
		{"upstreams:\n  a: {url: 'http://u:secret@a:b'}\n", `upstreams.a.url: is not the address of a server`},
		{"upstreams:\n  a: {url: 'ftp://u:secret@a'}\n", `is not the address of a server`},
		{"upstreams:\n  a: {url: http://a:70000}\n", `"http://a:70000" needs a port from 1 to 65535`},
		{"upstreams:\n  a: {url: http://u:secret@a}\n", `has more than scheme, host and path`},
		{"upstreams:\n  a: {url: http://a, http2: x}\n", `upstreams.a.http2: "x", want`},
		{"upstreams:\n  a: {url: https://a, http2: cleartext}\n", `upstreams.a.http2: is cleartext`},
		{ok + "redis: redis://h/-1\n", `p.yaml:3:8: redis: names the database -1`},
		{"upstreams:\n  a: {url: http://a, ca: /nowhere}\n", `upstreams.a.ca: is set, but the URL begins with http://`},
		{"upstreams:\n  a: {url: https://a, ca: /nowhere}\n", `upstreams.a.ca: open /nowhere`},
		{"upstreams:\n  a: {url: http://a, host: b}\n", `upstreams.a.host: "b", want`},
		{"upstreams:\n  a: {url: http://a, response_timeout: -1s}\n", `upstreams.a.response_timeout: is -1s`},
		{"", `upstreams: there are none`},
		{"# nothing\n", `upstreams: there are none`},
	} {
		conf, err := Parse("p.yaml", []byte(c.yaml))
		if err == nil {
			err = check(conf)
		}
		require.ErrorContains(t, err, c.want, "%s", c.yaml)
		for line := range strings.Lines(err.Error()) {
			require.True(t, strings.HasPrefix(line, "p.yaml"), "%s: %s", c.yaml, line)
		}
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	conf := parse(t, "rules: [{name: a}, {name: a, key: x}]\ntimeouts: {idle: -1s}\n")
	err := check(conf)
	require.Len(t, strings.Split(err.Error(), "\n"), 6, "%v", err)
	var field *FieldError
	require.True(t, errors.As(err, &field))
	require.NotEmpty(t, field.At)
	conf.SetOrigin("timeouts", "--flag")
	require.ErrorContains(t, check(conf), "--flag: timeouts.idle: is -1s")
	conf.source = nil
	require.True(t, errors.As(check(conf), &field))
	require.Empty(t, field.At, "a configuration in Go has no lines")
}

func TestRates(t *testing.T) {
	for text, per := range map[string]time.Duration{
		"10/60s": time.Minute, "10/h": time.Hour, "10/500ms": 500 * time.Millisecond, "10/1m30s": 90 * time.Second,
		"10/d": 24 * time.Hour, "10/7d": 168 * time.Hour, "10/ms": time.Millisecond, "10/1.5h": 90 * time.Minute,
	} {
		r, err := ParseRate(text)
		require.NoError(t, err)
		require.Equal(t, Rate{Limit: 10, Per: per}, r)
	}
	for text, want := range map[string]string{
		"10/day": "window(10 per day in UTC)", "10/week in UTC": "window(10 per week in UTC)", "10/month in Europe/Berlin": "window(10 per month in Europe/Berlin)",
	} {
		r, err := ParseRate(text)
		require.NoError(t, err)
		require.Equal(t, want, r.window().String())
	}
	for text, zone := range map[string]string{
		"1/day in Mars/Phobos": "Mars/Phobos", "1/day in ": "", "1/day in Local": "Local", "1/day in ../../etc/passwd": "../../etc/passwd", "1/day in  UTC": " UTC",
	} {
		require.ErrorContains(t, rateError(text), fmt.Sprintf("%q is not a rate: %q is not a time zone, want one such as Europe/Berlin", text, zone))
	}
	for _, text := range []string{"", "10", "10/", "/s", "-1/s", "0/s", "1/0s", "1/-1s", "1/x", "1/s/s", "99999999999999999999/s", "1/1.5d", "1/-1d", "1/0d",
		"1/d2", "1/106752d", "1.5/s", "0x10/s", "1e3/s", "1_000/s", "10/M", "10/year", "10/2day", "10/Day", "10/dayin UTC", "10/60s in UTC", "10/ 1s", "1/+1d", "1/65536d", "1/1d1h"} {
		require.Error(t, rateError(text), text)
	}
	require.ErrorContains(t, rateError("10/year"), `"year" is not a time, want one such as 60s, h, 7d or month`)
	for text, want := range map[string]Size{"1": 1, "64KiB": 65536, "2MiB": 2 << 20, "1GiB": 1 << 30} {
		s, err := parseSize(text)
		require.NoError(t, err)
		require.Equal(t, want, s)
	}
	for _, text := range []string{"", "0", "-1", "KiB", "1kb", "9999999999GiB"} {
		require.Error(t, sizeError(text), text)
	}
}

// TestStrictValues checks that a value in another notation than the documented one is an error, even if YAML could
// convert it. So is an empty or null value.
func TestStrictValues(t *testing.T) {
	const (
		whole   = "want a whole number"
		time    = "want a time with its unit"
		truth   = "want true or false"
		noValue = "has no value"
	)
	integers := []string{"replicas: %s", "upstreams: {main: {url: http://a, max_connections: %s}}",
		"rules: [{name: a, limits: [{rate: 9/s, algorithm: gcra, burst: %s}]}]", "rules: [{name: a, limits: [{rate: 9/s, block: {after: %s, for: 1s}}]}]"}
	durations := []string{"redis_timeout: %s", "timeouts: {stall: %s}", "upstreams: {main: {url: http://a, response_timeout: %s}}",
		"rules: [{name: a, limits: [{rate: 9/s, block: {after: 1, for: %s}}]}]"}
	bools := []string{"headers: {underscores: %s}", "rules: [{name: a, limit: 1/s, shadow: %s}]"}
	texts := []string{"redis: %s", "status: {token: %s}", "rules: %s", "rules: [%s]", "rules: [{name: a, limit: %s}]", "trusted_proxies: [%s]", "listen: [%s]",
		"timeouts: %s", "rules: [{name: a, limit: 1/s, deny: [%s]}]"}
	single := append(append(append([]string{}, integers...), durations...), bools...)
	for want, c := range map[string]struct{ fields, values []string }{
		whole:                 {integers, []string{"1.5", "2.0", "1e3", "-0", "'2'", "0x10", "0o10", "010", "1_000", "+2", ".inf", "true", "many", "99999999999999999999"}},
		time:                  {durations, []string{"5", "1.5", "'5'", "true", "soon", "1.5d", "99999999999d", "10 parsecs"}},
		truth:                 {bools, []string{"'true'", "yes", "on", "1", "0", "maybe"}},
		noValue:               {append(texts, single...), []string{"~", "null", " "}},
		"want a single value": {single, []string{"[1]", "[true]", "{}"}},
		"not supported":       {texts, []string{"!!str 1", "!!float 1", "&a 1", "*a"}},
	} {
		for _, field := range c.fields {
			for _, value := range c.values {
				if value == " " && strings.Contains(field, "[%s]") { // the value would be an empty list
					continue
				}
				conf, err := Parse("p.yaml", []byte("admin: :1\n"+fmt.Sprintf(field, value)))
				require.ErrorContains(t, err, want, "%s, %s: %+v", field, value, conf)
				require.True(t, strings.HasPrefix(err.Error(), "p.yaml:2:"), "%v", err)
			}
		}
	}
	for _, text := range []string{
		"upstreams: {010: {url: http://a}}", "upstreams: {1.50: {url: http://a}}", "upstreams: {main: {url: http://a}, main: {url: http://b}}",
		"listen: [{address: ':1', colour: 1}]", "headers: {Underscores: true}", "a: &a {x: 1}", "1: 2",
	} {
		_, err := Parse("p.yaml", []byte(text))
		require.Error(t, err, text)
	}

	c := parse(t, `
client_header: 010
status: {token: 1_000, path: 0x10}
redis: |
  redis://a
redis_timeout: 1d
upstreams: {8080: {url: http://a, response_timeout: 1m}}
rules:
  - {name: 1e3, match: {headers: {X: 1.50}}, cost: 2, deny: [010, 0.10, true, 1_000], tiers: [{keys: [0o7], limit: 1/d}], limit: 2/2m}
  - {name: -0, limits: [{rate: 9/s, block: {after: 2, for: 1.5h}}], shadow: true}
`)
	require.Equal(t, "010", c.ClientHeader)
	require.Equal(t, "1_000", c.Status.Token)
	require.Equal(t, "redis://a\n", c.Redis)
	require.Equal(t, 24*hour, c.RedisTimeout)
	require.Equal(t, hour/60, c.Upstreams["8080"].ResponseTimeout)
	r := c.Rules[0]
	require.Equal(t, []any{"1e3", "1.50", "2", []string{"010", "0.10", "true", "1_000"}, []string{"0o7"}},
		[]any{r.Name, r.Match.Headers["X"], r.Cost, r.Deny, r.Tiers[0].Keys})
	require.Equal(t, []Rate{{Limit: 1, Per: 24 * hour}, {Limit: 2, Per: 2 * hour / 60}}, []Rate{r.Tiers[0].Limit, r.Limit})
	require.Equal(t, "-0", c.Rules[1].Name)
	require.True(t, c.Rules[1].Shadow)
	require.Equal(t, ratelimit.Block{After: 2, For: hour + hour/2}, c.Rules[1].Limits[0].Block)
}

const hour = time.Hour

// TestInvalidDocuments checks that YAML documents which aren't a configuration are errors and don't cause a panic.
func TestInvalidDocuments(t *testing.T) {
	for _, text := range []string{"a", "- a", "~", "1", "<<: {nonsense: x}", "? [a]\n: b", "!!map {}", "*a", "&a x", "replicas: &a 1.5\nrules: *a"} {
		_, err := Parse("p.yaml", []byte(text))
		require.ErrorContains(t, err, "p.yaml:", "%s", text)
	}
	for _, text := range []string{"", "---", "# nothing", "---\n# nothing\n", "{}"} {
		c, err := Parse("p.yaml", []byte(text))
		require.NoError(t, err, text)
		require.ErrorContains(t, check(c), "upstreams: there are none", text)
	}
}
