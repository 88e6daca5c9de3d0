package params

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

// TestSharedBody reads from a copy of a request first. Then Params must return the whole body, or the error that the body
// is taken. If it returns the body, the copy can read the whole body again.
func TestSharedBody(t *testing.T) {
	large := "a=" + strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		kind, body string
		read       int // bytes that the copy reads first
		want       error
	}{
		"untouched form":         {formType, "a=1&b=2", 0, nil},
		"form, in part":          {formType, "a=1&b=2", 3, nil},
		"form, but for its end":  {formType, "a=1&b=2", 7, nil},
		"form":                   {formType, "a=1&b=2", 100, nil},
		"form with a charset":    {formType + "; charset=utf-8", "a=1&b=2", 100, nil},
		"large form, untouched":  {formType, large, 0, nil},
		"large form":             {formType, large, 2 << 20, ErrBodyTaken},
		"large form, in part":    {formType, large, 1000, nil},
		"untouched JSON":         {jsonType, `{"a":1}`, 0, nil},
		"JSON, in part":          {jsonType, `{"a":1}`, 3, ErrBodyTaken},
		"JSON":                   {jsonType, `{"a":1}`, 100, ErrBodyTaken},
		"an empty form":          {formType, "", 100, nil},
		"an empty form, at once": {formType, "", 0, nil},
	} {
		for _, declared := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(tt.body)))
				r.Header.Set("Content-Type", tt.kind)
				r.ContentLength = -1
				if declared {
					r.ContentLength = int64(len(tt.body))
				}
				Share(r, nil)
				shared := r.Body
				Share(r, nil)
				require.Same(t, shared, r.Body)
				p := paramsOf(t, r, Options{MaxBody: 8 << 20})
				other := r.WithContext(t.Context())
				_, err := io.CopyN(io.Discard, other.Body, int64(tt.read))
				require.True(t, err == nil || err == io.EOF, err)
				got, err := p.Body()
				require.ErrorIs(t, err, tt.want)
				if tt.want != nil {
					return
				}
				require.Equal(t, tt.body, string(got))
				require.Equal(t, tt.body, string(value(io.ReadAll(other.Body))))
				require.NoError(t, other.Body.Close())
			})
		}
	}
}

// once is a body that cannot be read after Close, like a body of net/http.
type once struct {
	io.Reader
	closed bool
}

func (o *once) Close() error { o.closed = true; return nil }

func (o *once) Read(p []byte) (int, error) {
	if o.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return o.Reader.Read(p)
}

func TestSharedFormThatWasReadAndClosed(t *testing.T) {
	r := postForm("/", "a=1")
	r.Body = &once{Reader: r.Body}
	Share(r, nil)
	other := r.WithContext(t.Context())
	require.NoError(t, failure(io.ReadAll(other.Body)))
	require.NoError(t, other.Body.Close())
	require.Equal(t, "1", value(paramsOf(t, r, Options{}).String("a")))
}

func TestShareLeavesARequestWithoutBody(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Body = body
		Share(r, nil)
		require.Equal(t, body, r.Body)
	}
}

func TestAppendToBody(t *testing.T) {
	for _, length := range []int64{-1, 5} {
		r := streamOf(strings.NewReader("hello"))
		r.ContentLength = length
		p := paramsOf(t, r, Options{})
		first, second := append(value(p.Body()), '!'), append(value(p.Body()), '?')
		require.Equal(t, "hello! hello?", string(first)+" "+string(second), "readers do not share spare capacity")
	}
}

func TestLargeBodyTakesLittleMemory(t *testing.T) {
	const size = 1_000_000
	limit := uint64(4 * size)
	if testenv.Racing { // slices.Grow then allocates twice
		limit *= 2
	}
	for _, declared := range []int64{-1, 1000, size} {
		body := strings.NewReader(strings.Repeat("x", size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		data, err := readAll(body, declared)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Len(t, data, size)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, limit, "the buffer doubles")
	}
}
