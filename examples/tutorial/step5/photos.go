package main

import (
	"net/http"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

type upload struct {
	Title string       `form:"title" required:"true"`
	Photo *params.File `form:"photo" required:"true"`
}

func addPhoto(w http.ResponseWriter, req *server.Request) error {
	account, err := User.Get(req)
	if err != nil {
		return err
	}
	in, err := params.Bind[upload](req)
	if err != nil {
		return err
	}
	// … store the photo, which in.Photo.Open() reads
	return server.WriteJSON(w, http.StatusCreated, map[string]any{
		"owner": account.Name, "title": in.Title, "bytes": in.Photo.Size,
	})
}
