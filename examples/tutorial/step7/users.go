package main

import (
	"context"
	"net/http"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// users stands for a database, which would store hashes of the passwords.
var users = map[string]*Account{
	"ada": {ID: "ada", Name: "Ada Lovelace", Password: "engine"},
}

type Account struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Password string `json:"-"` // not for clients
}

type credentials struct {
	User     string `form:"user" required:"true"`
	Password string `form:"password" required:"true"`
}

func login(w http.ResponseWriter, req *server.Request) error {
	in, err := params.Bind[credentials](req)
	if err != nil {
		return err
	}
	account := users[in.User]
	if account == nil || account.Password != in.Password {
		return server.Errorf(http.StatusUnauthorized, "The user or the password is wrong.")
	}
	return req.Session().Bind(in.User)
}

func logout(w http.ResponseWriter, req *server.Request) error {
	return req.Session().Destroy()
}

// User is the account of the user who is logged in.
var User = reqctx.NewKey[*Account]("user")

func loadUser(ctx context.Context) (*Account, error) {
	id, err := session.RequireUser(ctx)
	if err != nil {
		return nil, err
	}
	account, ok := users[id]
	if !ok {
		return nil, session.ErrNotBound // the account has been deleted
	}
	return account, nil
}

var visits = session.NewCounter("visits")

func me(w http.ResponseWriter, req *server.Request) error {
	account, err := User.Get(req)
	if err != nil {
		return err
	}
	if err := visits.Add(req, 1); err != nil {
		return err
	}
	n, err := visits.Get(req)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, map[string]any{"name": account.Name, "visits": n})
}
