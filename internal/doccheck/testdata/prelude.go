// Package doc declares the names that blocks of the documentation may use without declaring them.
package doc

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// A request, and what serves it.
var (
	ctx     context.Context
	w       http.ResponseWriter
	r       *http.Request
	req     *server.Request
	srv     *server.Server
	handler http.Handler
	mux     *http.ServeMux

	search, account, listNotes, deleteNote, reset server.HandlerFunc
)

// Stores and what needs them.
var (
	client   *redis.Client
	store    ratelimit.Store
	policy   *ratelimit.Policy
	policies []*ratelimit.Policy
)

// The application's own.
var (
	db    database
	model languageModel
	User  = reqctx.NewKey[*Account]("user")
	work  func(ctx context.Context) error
	vars  func(r *http.Request) map[string]string // of another router's path

	notify          func(user any)
	passwordIsRight func(name, password string) bool
	newServer       func() (*server.Server, error)
)

type Account struct{ ID, Name, Email, Plan, Role string }

type database struct{}

func (database) Account(ctx context.Context, id string) (*Account, error)

type languageModel struct{}

// Ask returns the answer, and how many tokens it cost.
func (languageModel) Ask(ctx context.Context, prompt string) (string, int64, error)
