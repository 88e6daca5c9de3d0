package problem

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// delayed is an error that says when the client may try again.
type delayed int64

func (d delayed) Error() string       { return "later" }
func (d delayed) RetrySeconds() int64 { return int64(d) }

func write(status int, members map[string]any, cause error) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	Write(rec, status, members, cause)
	return rec
}

func TestWrite(t *testing.T) {
	rec := write(404, map[string]any{"detail": "x"}, nil)
	require.Equal(t, 404, rec.Code)
	require.Equal(t, `{"detail":"x","status":404,"title":"Not Found"}`+"\n", rec.Body.String())
	require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", rec.Header().Get("X-Content-Type-Options"))
	require.Equal(t, strconv.Itoa(rec.Body.Len()), rec.Header().Get("Content-Length"))
	require.Len(t, rec.Header(), 3)

	for _, status := range []int{-1, 0, 200, 399, 600} {
		require.Equal(t, 500, write(status, nil, nil).Code)
	}
	long := strings.Repeat("x", 4096)
	require.Contains(t, write(400, map[string]any{"detail": long}, nil).Body.String(), long)
	rec = write(422, map[string]any{"detail": "x", "title": "y", "more": 1, "n": math.NaN()}, nil)
	require.Equal(t, `{"detail":"x","status":422,"title":"y"}`+"\n", rec.Body.String(), "without the member that is not JSON")
	rec = write(422, map[string]any{"title": math.NaN()}, nil)
	require.Equal(t, `{"status":422,"title":"Unprocessable Entity"}`+"\n", rec.Body.String())
	rec = write(409, map[string]any{"status": 200, "title": nil}, nil)
	require.Equal(t, `{"status":409,"title":null}`+"\n", rec.Body.String())
}

func TestRetryAfter(t *testing.T) {
	wrapped := errors.Join(errors.New("x"), delayed(7))
	require.Equal(t, "7", write(429, nil, delayed(7)).Header().Get("Retry-After"))
	require.Equal(t, "7", write(503, nil, wrapped).Header().Get("Retry-After"))
	require.Empty(t, write(400, nil, wrapped).Header().Get("Retry-After"), "waiting does not help")
	require.Empty(t, write(503, nil, errors.New("x")).Header().Get("Retry-After"))
	require.Empty(t, write(503, nil, nil).Header().Get("Retry-After"))
	rec := httptest.NewRecorder()
	rec.Header().Set("Retry-After", "60")
	Write(rec, 429, nil, delayed(7))
	require.Equal(t, []string{"60"}, rec.Header()["Retry-After"])
}

func TestWriterOf(t *testing.T) {
	require.Nil(t, WriterOf(t.Context()))
	var written error
	writer := Writer(func(_ http.ResponseWriter, _ *http.Request, err error) { written = err })
	WriterOf(context.WithValue(t.Context(), WriterKey{}, writer))(nil, nil, delayed(7))
	require.Equal(t, delayed(7), written)
}

// If a middleware encodes the body, there is no Content-Length, because the encoded length is not known.
func TestWriteWithinACompression(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Length", "7")
	Write(w, 409, nil, nil)
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	require.Empty(t, w.Header().Get("Content-Length"))
}
