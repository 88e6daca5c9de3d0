package redistest

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// role is what a server is to others. A server that does not answer has none.
type role struct {
	master    bool
	following bool // a replica that has all of its master
	online    bool // a master whose first replica is
}

func (s *Server) role() role {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	return roleOf(c)
}

func roleOf(c *redis.Client) role {
	info, _ := c.Info(context.Background()).Result()
	// A durable replica has on disk what it got only when it has written that anew.
	writing := strings.Contains(info, "aof_rewrite_in_progress:1") || strings.Contains(info, "aof_rewrite_scheduled:1")
	return role{
		master:    strings.Contains(info, "role:master"),
		following: strings.Contains(info, "master_link_status:up") && !writing,
		online:    strings.Contains(info, "state=online"),
	}
}
