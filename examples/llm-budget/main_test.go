package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
)

func complete(ctx context.Context, t *testing.T, srv *server.Server, name, maxTokens string) *servertest.Response {
	form := url.Values{"prompt": {"why is the sky blue"}, "max_tokens": {maxTokens}}
	r := httptest.NewRequestWithContext(ctx, "POST", "/complete", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	authorize(r, name)
	return servertest.Do(t, srv, r)
}

func authorize(r *http.Request, name string) {
	r.SetBasicAuth(name, map[string]string{"ada": "lovelace", "grace": "hopper"}[name])
}

func remaining(t *testing.T, srv *server.Server, name string) int {
	r := httptest.NewRequest("GET", "/budget", nil)
	authorize(r, name)
	res := servertest.Do(t, srv, r)
	require.Equal(t, http.StatusOK, res.Code)
	var quota struct{ Remaining int }
	require.NoError(t, json.Unmarshal(res.Body.Bytes(), &quota))
	return quota.Remaining
}

func newTestServer(t *testing.T) *server.Server {
	srv, err := newServer()
	require.NoError(t, err)
	return srv
}

func TestAnswerCostsWhatItUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t)
		res := complete(t.Context(), t, srv, "ada", "500")
		require.Equal(t, http.StatusOK, res.Code)
		require.True(t, res.Flushed, "streamed")
		words := len(strings.Fields(res.Body.String()))
		require.Less(t, words, 500)
		require.Equal(t, 2000-5-words, remaining(t, srv, "ada"), "the prompt has five tokens")
		require.Equal(t, 2000, remaining(t, srv, "grace"))
	})
}

func TestRunningAnswerHoldsItsReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t)
		var wg sync.WaitGroup
		wg.Go(func() { complete(t.Context(), t, srv, "ada", "1900") })
		<-time.After(time.Second)
		require.Equal(t, 95, remaining(t, srv, "ada"))
		res := complete(t.Context(), t, srv, "ada", "1900")
		require.Equal(t, http.StatusTooManyRequests, res.Code)
		require.NotEmpty(t, res.Header().Get("Retry-After"))
		wg.Wait()
		require.Equal(t, http.StatusOK, complete(t.Context(), t, srv, "ada", "1800").Code)
	})
}

func TestAbortedAnswerCostsWhatWasGenerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t)
		ctx, cancel := context.WithTimeout(t.Context(), 1025*time.Millisecond)
		defer cancel()
		complete(ctx, t, srv, "ada", "500")
		require.Equal(t, 2000-5-20, remaining(t, srv, "ada"), "20 tokens in a second")
	})
}

func TestRefusedRequests(t *testing.T) {
	srv := newTestServer(t)
	require.Equal(t, http.StatusBadRequest, complete(t.Context(), t, srv, "ada", "2000").Code, "more than the whole budget")
	for _, most := range []string{"many", "0", "-1", "9223372036854775807"} {
		require.Equal(t, http.StatusBadRequest, complete(t.Context(), t, srv, "ada", most).Code, most)
	}
	require.Equal(t, http.StatusUnauthorized, complete(t.Context(), t, srv, "eve", "1").Code)
	require.Equal(t, 2000, remaining(t, srv, "ada"))
}
