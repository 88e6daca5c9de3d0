package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
)

// A token starts one machine, in any of the processes that share a Redis.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Options{Prefix: "myapp:coord:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := coord.NewTokens(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	id := coord.NewID()
	if err := tokens.Issue(context.Background(), id, []byte("small"), 30*time.Second); err != nil {
		fmt.Println(err)
		return
	}
	token, err := tokens.Use(context.Background(), id, "ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("starting a %s machine\n", token.Metadata)
}
