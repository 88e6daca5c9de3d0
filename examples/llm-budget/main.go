// LLM-budget gives each user 2,000 tokens of a language model per hour. The cost of an answer is known only
// at its end. So a request reserves the maximum, streams the answer, and then settles with the tokens that it
// has used. If the client leaves early, it pays for the tokens that were generated until then.
//
//	go run ./examples/llm-budget
//
//	curl -N -u ada:lovelace -d 'prompt=why is the sky blue' http://127.0.0.1:8080/complete
//	curl -u ada:lovelace http://127.0.0.1:8080/budget
//
// Abort the first with Ctrl-C, and look at the budget while it runs and afterwards. With
// -d max_tokens=1900 a second request is denied for as long as the first one runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/reservation"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

// user is a property: the name of the user who sent the request, from Basic authentication.
var user = reqctx.NewKey[string]("user")

func authenticate(ctx context.Context) (string, error) {
	name, password, _ := reqctx.From(ctx).Request().BasicAuth()
	if passwords := map[string]string{"ada": "lovelace", "grace": "hopper"}; password == "" || passwords[name] != password {
		return "", server.Errorf(http.StatusUnauthorized, "The name or the password is wrong.")
	}
	return name, nil
}

// budget holds the users' quota of tokens. limiter reads the quota, and reserver takes from it.
type budget struct {
	limiter  *ratelimit.Limiter
	reserver *reservation.Reserver
}

func newServer() (*server.Server, error) {
	store, err := memstore.New(memstore.Options{}) // for several processes, use redisstore.New
	if err != nil {
		return nil, err
	}
	rule := ratelimit.PerHour(2000)
	var b budget
	if b.limiter, err = ratelimit.NewLimiter(store, rule); err != nil {
		return nil, err
	}
	if b.reserver, err = reservation.New(store, rule, reservation.Options{}); err != nil {
		return nil, err
	}
	srv, err := server.New(server.Options{})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), user, reqctx.Prop[string]{Resolve: authenticate})
	srv.HandleFunc("POST /complete", b.complete)
	srv.HandleFunc("GET /budget", b.show)
	return srv, nil
}

func (b *budget) complete(w http.ResponseWriter, req *server.Request) error {
	name, err := user.Get(req)
	if err != nil {
		return err
	}
	prompt, err := req.Params().Form().String("prompt")
	if err != nil {
		return err
	}
	most, err := req.Params().Form().IntOr("max_tokens", 500)
	if err != nil {
		return err
	}
	if most < 1 || most > 4000 {
		return server.Errorf(http.StatusBadRequest, "max_tokens must be from 1 to 4000.")
	}
	used := countTokens(prompt)
	reserved, err := b.reserver.Reserve(req, "tokens:"+name, used+int64(most))
	if err != nil {
		return err // for example ratelimit.ErrTooLarge, which is a 400, because the request can never pass
	}
	if err := reserved.Result().Err(); err != nil {
		return err // a 429; when a running answer settles, a request may pass sooner than Retry-After says
	}
	// If the process dies before this, the whole estimate stays charged.
	defer func() { settle(req, name, reserved, used) }()
	for word := range generate(req, most) {
		used++ // this token was generated, whether the client receives it or not
		if _, err := io.WriteString(w, word+" "); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
	}
	return nil
}

// settle replaces the charge of the estimate with the tokens that were used. It also does this if the client has left
// and ctx has ended.
func settle(ctx context.Context, name string, reserved *reservation.Reservation, used int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	settled, err := reserved.Commit(ctx, used)
	if err != nil {
		log.Printf("%s: the estimate may stay charged: %v", name, err)
		return
	}
	log.Printf("%s: %d tokens charged, %d given back", name, settled.Charged, settled.Returned)
}

// show answers with the tokens that are left. Peek charges nothing.
func (b *budget) show(w http.ResponseWriter, req *server.Request) error {
	name, err := user.Get(req)
	if err != nil {
		return err
	}
	left, err := b.limiter.Peek(req, "tokens:"+name, 1)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, map[string]int64{"limit": left.Limit, "remaining": left.Remaining})
}

// countTokens is a stand-in for the model's tokenizer.
func countTokens(text string) int64 { return int64(len(strings.Fields(text))) }

// generate is a stand-in for the model. It yields 20 tokens per second until the answer is complete or ctx ends.
func generate(ctx context.Context, most int) iter.Seq[string] {
	words := strings.Fields(strings.Repeat("Light is scattered by air, and short waves more than long ones. ", 10))
	return func(yield func(string) bool) {
		for _, word := range words[:min(most, len(words))] {
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			if !yield(word) {
				return
			}
		}
	}
}
