package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server/servertest"
)

func get(t *testing.T, path string) (a list) {
	srv, err := newServer()
	require.NoError(t, err)
	res := servertest.Do(t, srv, httptest.NewRequest("GET", path, nil))
	require.Equal(t, http.StatusOK, res.Code)
	require.NoError(t, json.Unmarshal(res.Body.Bytes(), &a))
	return a
}

func TestQueries(t *testing.T) {
	naive, batched := get(t, "/naive"), get(t, "/posts")
	require.EqualValues(t, 21, naive.Queries)
	require.Len(t, naive.Posts, 20)
	require.Equal(t, "Ada", naive.Posts[0].Author)
	require.Equal(t, naive.Posts, batched.Posts)
	require.EqualValues(t, 2, batched.Queries)
}
