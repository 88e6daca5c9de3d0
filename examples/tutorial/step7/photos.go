package main

import (
	"errors"
	"io"
	"net/http"
	"os"

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
	if err := save(in.Photo); err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusCreated, map[string]any{
		"owner": account.Name, "title": in.Title, "bytes": in.Photo.Size,
	})
}

// save copies the photo to a new file in the working directory.
func save(photo *params.File) error {
	file, err := os.CreateTemp(".", "photo-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, photo.Open())
	return errors.Join(err, file.Close())
}
