package proxy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMetrics(t *testing.T) {
	up := behind(t, nil)
	p := run(t, limited(t, up.URL, "2/60s"))
	for range 5 {
		p.get(t, "/", "Authorization", josh)
	}
	m := p.metrics(t, "ratelimit_proxy")
	for _, want := range []string{
		`ratelimit_proxy_decisions_total{rule="limit",decision="allowed"} 2`,
		`ratelimit_proxy_decisions_total{rule="limit",decision="denied"} 3`,
		`ratelimit_proxy_decisions_total{rule="limit",decision="error"} 0`,
		`ratelimit_proxy_furthest_beyond{rule="limit"} 3`,
		`ratelimit_proxy_beyond_keys 1`,
		`ratelimit_proxy_responses_total{upstream="main",status="2xx"} 2`,
		`ratelimit_proxy_store_down 0`,
	} {
		require.Contains(t, m, want+"\n")
	}
	require.NotContains(t, m, "am9za")
	require.NotContains(t, m, "0xx")

	// Each name has its type and what it is, once and before its first line.
	all, had := p.metrics(t, ""), map[string]bool{}
	for line := range strings.Lines(all) {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		if !strings.HasPrefix(name, "ratelimit_") || had[name] {
			continue
		}
		had[name] = true
		require.Equal(t, 1, strings.Count(all, "# TYPE "+name+" "), name)
		require.Regexp(t, "# HELP "+name+" [A-Z].*\n# TYPE "+name+" (gauge|counter)\n"+name+"[{ ]", all)
	}
	require.NoError(t, p.Reload(limited(t, up.URL, "2/60s")))
	p.metrics(t, "")
	for line := range strings.Lines(p.metrics(t, "# TYPE ratelimit_")) {
		had[strings.Fields(line)[2]] = true
	}
	require.Subset(t, slices.Collect(maps.Keys(help)), slices.Collect(maps.Keys(had)))
	require.NotEmpty(t, p.metrics(t, "process_cpu_seconds_total"))
}
