package server

import (
	"encoding/json"
	"net/http"
)

// stack is a way to build the server that is measured.
type stack struct {
	name string
	// open returns the server, whose sessions and counters are in the Redis at addr.
	open func(addr string) (http.Handler, error)
	// sessions says that POST /login makes a session.
	sessions bool
}

var stacks = []stack{
	{name: ours, open: openLazy, sessions: true},
	{name: "chi", open: openChi, sessions: true},
	{name: "gin", open: openGin, sessions: true},
	{name: "bare", open: openBare},
}

const ours = "lazyreq"

// What is the same for all stacks.
const (
	user      = "ada"
	userField = "user"
	perMinute = 100_000_000 // more than any machine asks for
	poolSize  = 64          // connections to Redis: no request waits for one
)

// page is what both routes answer.
type page struct {
	User  string `json:"user"`
	Query string `json:"query"`
}

var lightPage = page{User: "anybody", Query: "anything"}

func (p page) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(p)
}

// encoded returns what a client gets of p.
func (p page) encoded() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // two strings
	}
	return string(b) + "\n"
}
