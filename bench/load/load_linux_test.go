package load

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asking is a connection that asks for one page.
type asking struct {
	text string
	Answer
}

func (a *asking) Next() []byte { return []byte(a.text) }

// run loads a server whose answers are "good" and, after some, what wrong returns.
func run(t *testing.T, good int, wrong http.HandlerFunc, o Options) (Result, error) {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > good { // there is one connection
			wrong(w, r)
			return
		}
		fmt.Fprint(w, "good")
	}))
	t.Cleanup(s.Close)
	o.Addr, o.Conns = strings.TrimPrefix(s.URL, "http://"), 1
	return Run(o, func(int) Conn {
		return &asking{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Answer{Status: "200", Body: []byte("good")}}
	})
}

func TestWhatIsMeasured(t *testing.T) {
	var began, ended time.Time
	o := Options{WarmUp: 50 * time.Millisecond, Measure: 500 * time.Millisecond}
	o.Began = func() error { began = time.Now(); return nil }
	o.Ended = func() error { ended = time.Now(); return nil }
	at := time.Now()
	res, err := run(t, 1e9, nil, o)
	require.NoError(t, err)
	require.Empty(t, res.Wrong)
	require.Positive(t, res.Throughput)
	require.Greater(t, float64(res.Requests), res.Throughput*0.5, "those of the warm-up are no part of it")
	require.Positive(t, res.P50)
	require.GreaterOrEqual(t, res.P99, res.P50)
	require.GreaterOrEqual(t, began.Sub(at), o.WarmUp)
	require.GreaterOrEqual(t, ended.Sub(at), o.WarmUp+o.Measure)
}

func TestWrongAnswerEndsIt(t *testing.T) {
	o := Options{Measure: time.Minute}
	res, err := run(t, 3, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, o)
	require.NoError(t, err)
	require.Equal(t, 4, res.Requests)
	require.Contains(t, res.Wrong, "429 Too Many Requests, want 200")

	res, err = run(t, 2, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, o)
	require.NoError(t, err)
	require.Contains(t, res.Wrong, "the connection ended")
}

func TestAnswerOfAnyBody(t *testing.T) {
	a := Answer{Status: "429"}
	header := "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 3\r\n\r\n"
	whole, err := a.Check([]byte(header + "ab"))
	require.NoError(t, err)
	require.False(t, whole)
	whole, err = a.Check([]byte(header + "abc"))
	require.NoError(t, err)
	require.True(t, whole)
	for _, wrong := range []string{header + "abcd", "HTTP/1.1 420", "HTTP/1.0", "HTTP/1.1 429 Too\r\n\r\n"} {
		_, err = a.Check([]byte(wrong))
		require.ErrorIs(t, err, ErrWrong, wrong)
	}
}
