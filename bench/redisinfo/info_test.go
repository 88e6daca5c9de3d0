package redisinfo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	info, err := parse("# CPU\r\nused_cpu_sys:0.25\r\nused_cpu_user:1.5\r\nused_cpu_sys_children:9\r\n\r\n" +
		"# Stats\r\ntotal_net_input_bytes:7\r\ntotal_net_output_bytes:5\r\n" +
		"# Commandstats\r\ncmdstat_evalsha:calls=12,usec=3\r\ncmdstat_config|get:calls=1,usec=2\r\ncmdstat_get:calls=3,usec=1\r\n")
	require.NoError(t, err)
	require.Equal(t, 1750*time.Millisecond, info.CPU)
	require.Equal(t, 12, info.Bytes)
	require.Equal(t, map[string]int{"evalsha": 12, "config|get": 1, "get": 3}, info.Calls)
	require.Equal(t, 12+3+3, info.Sum([]string{"evalsha", "get", "get", "never"}))
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"used_cpu_sys:much\r\n", "cmdstat_get:calls=x,usec=1\r\n"} {
		_, err := parse(text)
		require.ErrorContains(t, err, "redisinfo: ")
	}
}
