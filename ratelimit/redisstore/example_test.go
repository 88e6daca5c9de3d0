package redisstore_test

import (
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
)

// Servers that use the same Redis share their limits.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Options{Prefix: "shop:limit:"})
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.New(server.Options{
		RateLimits:     []*ratelimit.Policy{ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(10))},
		RateLimitStore: store,
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(srv.ListenAndServe(":8080"))
}
