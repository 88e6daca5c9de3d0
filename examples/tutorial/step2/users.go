package main

import (
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/params"
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

func me(w http.ResponseWriter, req *server.Request) error {
	user, err := session.RequireUser(req)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "You are %s.\n", user)
	return err
}
