package server

import (
	"encoding/json"
	"net/http"
)

// WriteJSON answers with v as JSON, by [encoding/json]. It encodes v first: if that fails,
// nothing has been written, and the error that a [HandlerFunc] returns becomes a 500.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}
