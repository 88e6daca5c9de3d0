package testhost

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// role is the replication state of a server. A server that does not answer has the zero role.
type role struct {
	master    bool
	follows   string // the port of a replica's master
	offset    int    // how far the replication stream was applied here
	following bool   // a replica that is in sync with its master
	online    bool   // a master whose first replica is online
}

func (s *Redis) role() role {
	o := &redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true}
	setShortTimeouts(o)
	c := redis.NewClient(o)
	defer c.Close()
	return roleOf(c)
}

func roleOf(c *redis.Client) role {
	info, _ := c.Info(context.Background()).Result()
	// A durable replica has on disk what it got only when it has written that anew.
	writing := strings.Contains(info, "aof_rewrite_in_progress:1") || strings.Contains(info, "aof_rewrite_scheduled:1")
	offset, _ := strconv.Atoi(field(info, "master_repl_offset"))
	if processed := field(info, "slave_repl_offset"); processed != "" {
		offset, _ = strconv.Atoi(processed)
	}
	return role{
		master:    field(info, "role") == "master",
		follows:   field(info, "master_port"),
		offset:    offset,
		following: field(info, "master_link_status") == "up" && !writing,
		online:    strings.Contains(info, "state=online"),
	}
}

// field returns a field of INFO, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// waitCaughtUp waits until the replica has applied all writes of the master.
func waitCaughtUp(tb testing.TB, master, replica *Redis) {
	tb.Helper()
	offset := master.role().offset
	waitFor(tb, "the replica has all that the master has", func() bool {
		r := replica.role()
		return r.following && r.offset >= offset
	})
}
