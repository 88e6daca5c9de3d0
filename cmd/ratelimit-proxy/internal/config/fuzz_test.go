package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse checks that Parse and Resolve don't panic, and that a resolved configuration passes the checks again.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"../../../../docs/proxy.yaml"} {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, text := range []string{
		"", "a", "- a", "<<: {nonsense: x}", "&a x", "replicas: &a 1.5\nrules: *a", "a: &a [*a]",
		"upstreams:\n  - url: http://127.0.0.1:1\nrules:\n  - {name: all, key: '{client.ip}', limit: 5/1s}\n",
		"upstreams: [{url: 'http://[::1]:80'}]\nrules: [{name: x, match: {path: '/a/*'}, key: '{header.X} {path}', cost: '{header.Y}', limits: [{rate: 1/1h, algorithm: gcra}]}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("p.yaml", []byte(text))
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "p.yaml:"), err)
			return
		}
		resolved, err := c.Resolve()
		if err != nil {
			return
		}
		_, err = resolved.Resolve()
		require.NoError(t, err, "the checked configuration is checked again")
	})
}

func FuzzKey(f *testing.F) {
	for _, text := range []string{"{client.ip}", "{header.x-key} {path}", "a{query.q}b", "{", "}{host}", "{cookie.}", "{{method}}"} {
		f.Add(text, "Bearer  x")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		k, err := ParseKey(text)
		if err != nil {
			return
		}
		again, err := ParseKey(textOf(k))
		require.NoError(t, err)
		require.Equal(t, k, again)
		if value, err := k.Value(value); err == nil {
			require.NotEmpty(t, value)
		}
		for _, p := range k {
			once := p.Normalize(value)
			if p.Kind == "host" || p.Kind == "path" || p.Kind == "query" {
				require.Equal(t, once, p.Normalize(once), "%v of %q", p, value)
			}
		}
	})
}

// textOf returns a key as it is written in a configuration.
func textOf(k Key) (text string) {
	for _, p := range k {
		switch p.Kind {
		case "":
			text += p.Name
		case "client":
			text += "{client.ip}"
		case "host", "path", "method":
			text += "{" + p.Kind + "}"
		default:
			text += "{" + p.Kind + "." + p.Name + "}"
		}
	}
	return text
}

func FuzzHost(f *testing.F) {
	for _, text := range []string{"example.com", "EXAMPLE.com.:80", "[::1]:8080", "[fe80::1%eth0]", "a..b", "127.1", "0x7f.1:0", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, ok := ParseHost(text)
		if !ok {
			require.Empty(t, host)
			return
		}
		require.Equal(t, strings.ToLower(host), host)
		again, ok := ParseHost(host)
		require.True(t, ok)
		require.Equal(t, host, again)
	})
}
