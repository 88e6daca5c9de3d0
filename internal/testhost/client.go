package testhost

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lingers is a function of go-redis in which a goroutine can outlive its client. A pool that could not dial retries once
// a second, and only then notices that it was closed. Leak tests ignore it.
const Lingers = "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"

// forEachMaster calls f for each master, perhaps concurrently.
func forEachMaster(ctx context.Context, c redis.UniversalClient, f func(context.Context, *redis.Client) error) error {
	if cluster, ok := c.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, f)
	}
	return f(ctx, c.(*redis.Client))
}

// FlushAll removes all keys of all masters.
func FlushAll(tb testing.TB, c redis.UniversalClient) {
	tb.Helper()
	must(tb, forEachMaster(tb.Context(), c, func(ctx context.Context, node *redis.Client) error { return node.FlushAll(ctx).Err() }))
}

// Content returns the value of a key, so that a test can compare it. It does not use DUMP for hashes, because the order
// of a large hash can change without a write.
func Content(tb testing.TB, c redis.UniversalClient, key string) any {
	tb.Helper()
	var v any
	var err error
	if c.Type(tb.Context(), key).Val() == "hash" {
		v, err = c.HGetAll(tb.Context(), key).Result()
	} else {
		v, err = c.Dump(tb.Context(), key).Result()
	}
	must(tb, err)
	return v
}

// CheckMemory fails the test if the size of a key differs from the documented bytes by more than a share of them. The
// documented sizes are those of Redis 7.0. With other versions, a key may be smaller.
func CheckMemory(tb testing.TB, c *redis.Client, key string, documented int, share float64) {
	tb.Helper()
	used, err := c.MemoryUsage(tb.Context(), key, 0).Result()
	must(tb, err)
	measured := strings.Contains(c.Info(tb.Context(), "server").Val(), "redis_version:7.0.")
	ratio := float64(used) / float64(documented)
	if ratio > 1+share || measured && ratio < 1-share {
		tb.Errorf("testhost: %s takes %d bytes, not %d", key, used, documented)
	}
}

// AgeKey runs a script for every key. The script makes the key older by its argument, in microseconds.
func AgeKey(tb testing.TB, c redis.UniversalClient, older *redis.Script, d time.Duration) {
	tb.Helper()
	must(tb, forEachMaster(tb.Context(), c, func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, "*").Result()
		for _, key := range keys {
			err = errors.Join(err, older.Run(ctx, node, []string{key}, d.Microseconds()).Err())
		}
		return err
	}))
}

// FixedReplyClient returns a client of a server that sends the same reply to every command.
func FixedReplyClient(tb testing.TB, reply string) *redis.Client {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go sendReplies(conn, reply)
		}
	}()
	c := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func sendReplies(conn net.Conn, reply string) {
	defer conn.Close()
	b := make([]byte, 64<<10)
	for {
		if _, err := conn.Read(b); err != nil {
			return
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// QuotingReplies returns replies by name. They are errors that quote a text, or invalid for every store. No error of a
// store may contain the quote. secret is a part of quote without a key.
func QuotingReplies(quote, secret string) map[string]string {
	return map[string]string{
		"unknown command": "-ERR unknown command 'evalsha', with args beginning with: '" + quote + "'\r\n",
		"unknown alone":   "-ERR unknown command 'evalsha', with args beginning with: '" + secret + "'\r\n",
		"quoting error":   "-ERR something about " + quote + "\r\n",
		"quoting type":    "-WRONGTYPE " + quote + "\r\n",
		"no protocol":     "?" + quote + "\r\n",
		"number":          ":" + quote + "\r\n",
		"length":          "$" + quote + "\r\n",
		"other status":    "+" + quote + "\r\n",
		"other number":    ":77\r\n",
		"null":            "$-1\r\n",
		"empty array":     "*0\r\n",
	}
}

// KeepFlushingScripts flushes all scripts again and again until the test calls end.
func KeepFlushingScripts(tb testing.TB, c *redis.Client) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				c.ScriptFlush(tb.Context())
			}
		}
	}()
	return func() { close(stop); <-ended }
}
