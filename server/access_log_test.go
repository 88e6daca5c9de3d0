package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

func TestAccessLog(t *testing.T) {
	var out bytes.Buffer
	srv, _ := newServer(t, server.Options{Observers: []server.Observer{server.AccessLog(slog.New(slog.NewJSONHandler(&out, nil)))}})
	srv.HandleFunc("/users/{id}", func(w http.ResponseWriter, _ *server.Request) error {
		_, err := io.WriteString(w, "ada")
		return err
	})
	srv.HandleFunc("/files/{user}/", func(http.ResponseWriter, *server.Request) error { return nil })
	for _, tt := range []struct {
		method, target string
		want           map[string]any
	}{
		{"GET", "/users/secret?q=secret", map[string]any{"method": "GET", "route": "/users/{id}", "status": 200.0, "bytes": 3.0}},
		{"GET", "/secret", map[string]any{"method": "GET", "route": "", "status": 404.0}},
		{"SECRET", "/users/7", map[string]any{"method": "other", "route": "/users/{id}", "status": 200.0, "bytes": 3.0}},
		{"CONNECT", "/files/secret", map[string]any{"method": "CONNECT", "route": "", "status": 307.0}},
		{"CONNECT", "/files/secret/", map[string]any{"method": "CONNECT", "route": "/files/{user}/", "status": 200.0}},
	} {
		out.Reset()
		srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, tt.target, nil))
		require.NotContains(t, out.String(), "secret")
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line), "one line")
		require.Equal(t, "request", line["msg"])
		require.Equal(t, "INFO", line["level"])
		require.GreaterOrEqual(t, line["ms"], 0.0)
		for name, want := range tt.want {
			require.Equal(t, want, line[name], name)
		}
		require.Len(t, line, 8)
	}
}

func TestAccessLogWithoutLogger(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	srv, _ := newServer(t, server.Options{Observers: []server.Observer{server.AccessLog(nil)}})
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	require.Contains(t, out.String(), "msg=request method=GET")
}
