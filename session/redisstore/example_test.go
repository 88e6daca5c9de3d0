package redisstore_test

import (
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

// Servers that use the same Redis share their sessions.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Options{Prefix: "shop:session:"})
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.New(server.Options{SessionStore: store})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(srv.ListenAndServe(":8080"))
}
