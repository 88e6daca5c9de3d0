package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// timedWriter is a response's writer with a deadline.
type timedWriter struct {
	*httptest.ResponseRecorder
	until time.Time
	sets  int
}

func (w *timedWriter) SetWriteDeadline(t time.Time) error {
	w.until = t
	w.sets++
	return nil
}

// Each write has between stall and twice stall, and the deadline is not moved for each write.
func TestWriteDeadlines(t *testing.T) {
	const stall = time.Minute
	for name, own := range map[string]time.Duration{"our server": 2 * stall, "another's": time.Second, "none": 0} {
		synctest.Test(t, func(t *testing.T) {
			w := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest("GET", "/", nil)
			if own > 0 {
				w.until = time.Now().Add(own)
				r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{WriteTimeout: own}))
			}
			out := newResponseWriter(w, r, stall)
			out.WriteHeader(200)
			require.Zero(t, w.sets, "it is not sent yet")
			for i := range 600 {
				_, err := out.Write([]byte("x"))
				require.NoError(t, err)
				left := time.Until(w.until)
				require.True(t, stall <= left && left <= 2*stall, "%s: %v left at write %d", name, left, i)
				if i == 0 && own == 2*stall {
					require.Zero(t, w.sets, "net/http has set one that will do")
				}
				<-time.After(time.Duration(i%3) * time.Second)
			}
			require.Less(t, w.sets, 40)
			<-time.After(10 * stall) // the upstream takes its time
			require.NoError(t, out.FlushError())
			require.GreaterOrEqual(t, time.Until(w.until), stall)
		})
	}
}

// Over HTTP/2, a deadline that passes ends the stream even if no write is in flight.
func TestNoDeadlineBetweenHTTP2Writes(t *testing.T) {
	w := &timedWriter{ResponseRecorder: httptest.NewRecorder(), until: time.Now()}
	r := httptest.NewRequest("GET", "/", nil)
	r.ProtoMajor = 2
	out := newResponseWriter(w, r, time.Minute)
	require.True(t, w.until.IsZero())
	for range 3 {
		_, err := out.Write([]byte("x"))
		require.NoError(t, err)
		require.True(t, w.until.IsZero())
	}
	require.Equal(t, 1+2*3, w.sets)
	out.beginWrite()
	require.False(t, w.until.IsZero())
}
