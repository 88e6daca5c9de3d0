package proxy

import (
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
		`ratelimit_proxy_max_consecutive_denials{rule="limit"} 3`,
		`ratelimit_proxy_denied_keys 1`,
		`ratelimit_proxy_responses_total{upstream="main",status="2xx"} 2`,
		`ratelimit_proxy_store_down 0`,
	} {
		require.Contains(t, m, want+"\n")
	}
	require.NotContains(t, m, "am9za")
	require.NotContains(t, m, "0xx")

	// Each of our metrics has its own HELP text.
	for line := range strings.Lines(p.metrics(t, "# HELP ratelimit_")) {
		require.Contains(t, help, strings.Fields(line)[2])
	}
}
