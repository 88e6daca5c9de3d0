package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server/servertest"
)

func TestSetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := newServer(&settings{themes: map[string]string{}})
		require.NoError(t, err)
		do := func(method, body string) *servertest.Response {
			r := httptest.NewRequest(method, "/users/ada/theme", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return servertest.Do(t, srv, r)
		}
		require.Equal(t, "theme of ada: light\n", do("GET", "").Body.String())

		began := time.Now()
		require.Equal(t, "theme of ada: dark\n", do("PUT", "theme=dark").Body.String())
		require.Equal(t, 50*time.Millisecond, time.Since(began), "one save, which the request waits for, and no load")
		require.Equal(t, "theme of ada: dark\n", do("GET", "").Body.String())

		res := do("PUT", "theme=pink")
		require.Equal(t, http.StatusUnprocessableEntity, res.Code)
		require.Contains(t, res.Body.String(), "The theme must be light or dark.")
		require.Equal(t, "theme of ada: dark\n", do("GET", "").Body.String())
	})
}
