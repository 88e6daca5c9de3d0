package redispipe

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// pause is how long a call waits that is to be tried again.
const pause = 10 * time.Millisecond

// again queues a call once more, after a pause, that no node of a Cluster took, because the
// slot of its keys is on its way. Redis did not run it. From then on it goes by itself:
// its own keys may be together where those of a command of several calls are not. Others of its trip don't wait for it, unless they are of its group. again tells
// whether it did: not beyond the deadline of the first trip.
func (p *Pipe) again(c *call, deadline time.Time) bool {
	if c.until.IsZero() {
		c.until = deadline
	}
	if !onTheWay(c.err) || time.Until(c.until) < pause {
		return false
	}
	c.alone, c.err = true, nil
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		p.queue = append(p.queue, c)
		t := p.takeOff()
		p.mu.Unlock()
		if t != nil {
			t.begin()
		}
	})
	return true
}

// onTheWay says that a node refused because keys are, or have gone, somewhere else; the
// client has followed them as often as it does.
func onTheWay(err error) bool {
	return redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "MOVED")
}

// doubt reloads what the client knows of a Cluster if a node gave no answer.
func (t *trip) doubt(cmds []command) {
	for _, cmd := range cmds {
		var reply redis.Error
		if err := cmd.Err(); err != nil && !errors.As(err, &reply) {
			t.p.reload()
			return
		}
	}
}

// reload lets the client of a Cluster ask who the masters are. By itself it asks once a
// minute, or when a node sends it to another, which a dead one never does. It returns at
// once, and costs the Cluster a few questions a second at most.
func (p *Pipe) reload() {
	if c, ok := p.client.(*redis.ClusterClient); ok {
		c.ReloadState(context.Background())
	}
}
