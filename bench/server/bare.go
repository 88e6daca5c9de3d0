package server

import "net/http"

// openBare is net/http without session, parameters and limit: what is left when all
// of it costs nothing.
func openBare(string) (http.Handler, error) {
	full := page{user, fullQuery}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /light", func(w http.ResponseWriter, _ *http.Request) { _ = lightPage.write(w) })
	mux.HandleFunc("GET /full", func(w http.ResponseWriter, _ *http.Request) { _ = full.write(w) })
	return mux, nil
}
