package redispipe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestClusterStart has clients that don't know the slots yet, in a Cluster with a node that is down.
func TestClusterStart(t *testing.T) {
	var healthy *fake
	healthy = newFake(t, func(args []string) string {
		if args[0] == "evalsha" {
			return "*1\r\n:1\r\n"
		}
		return slotsReply(healthy.Addr)
	})
	for name, addrs := range map[string][]string{
		"dead": {refusing(t), refusing(t), healthy.Addr},
		"hung": {silent(t), healthy.Addr},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			for range 20 {
				c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
				require.NoError(t, run(t.Context(), newPipe(t, c), long, "n", 1))
				require.NoError(t, c.Close())
			}
			require.Less(t, time.Since(began), long/4, "no node is waited for")
		})
	}
}

// slotsReply returns the reply to CLUSTER SLOTS of a Cluster whose only node has the address addr.
func slotsReply(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$1\r\nx\r\n", len(host), host, port)
}
