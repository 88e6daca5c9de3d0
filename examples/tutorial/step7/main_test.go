package main

import (
	"net/http/httptest"
	"testing"

	"github.com/lazyreq/lazyreq/server/servertest"
)

var alan = &Account{ID: "alan", Name: "Alan Turing"}

func TestMe(t *testing.T) {
	srv, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	r := servertest.Preset(httptest.NewRequest("GET", "/me", nil), User, alan)
	res := servertest.Do(t, srv, r)
	if got, want := res.Body.String(), `{"name":"Alan Turing","visits":1}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	res.RequireResolved(t, "session") // for the visits; the user was preset
}

func TestUploadsAreLimited(t *testing.T) {
	srv, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{400, 400, 400, 429} { // there is no photo in the requests
		r := servertest.Preset(httptest.NewRequest("POST", "/photos", nil), User, alan)
		if res := servertest.Do(t, srv, r); res.Code != want {
			t.Errorf("upload %d: got %d, want %d", i+1, res.Code, want)
		}
	}
}
