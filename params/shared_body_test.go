package params_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
)

// After a read from a copy of the request, Params has the whole form or reports that the
// body is taken; and the copy has all that Params has read.
func TestSharedBody(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	large := "a=" + strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		kind, body string
		read       int // by another, before
		want       error
	}{
		"untouched form":         {form, "a=1&b=2", 0, nil},
		"form, in part":          {form, "a=1&b=2", 3, nil},
		"form, but for its end":  {form, "a=1&b=2", 7, nil},
		"form":                   {form, "a=1&b=2", 100, nil},
		"form with a charset":    {form + "; charset=utf-8", "a=1&b=2", 100, nil},
		"large form, untouched":  {form, large, 0, nil},
		"large form":             {form, large, 2 << 20, params.ErrBodyTaken},
		"large form, in part":    {form, large, 1000, nil},
		"untouched JSON":         {"application/json", `{"a":1}`, 0, nil},
		"JSON, in part":          {"application/json", `{"a":1}`, 3, params.ErrBodyTaken},
		"JSON":                   {"application/json", `{"a":1}`, 100, params.ErrBodyTaken},
		"an empty form":          {form, "", 100, nil},
		"an empty form, at once": {form, "", 0, nil},
	} {
		for _, declared := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(tt.body)))
				r.Header.Set("Content-Type", tt.kind)
				r.ContentLength = -1
				if declared {
					r.ContentLength = int64(len(tt.body))
				}
				params.Share(r, nil)
				shared := r.Body
				params.Share(r, nil)
				require.Same(t, shared, r.Body)
				reg := reqctx.NewRegistry(reqctx.Options{})
				params.Provide(reg, params.Options{MaxBody: 8 << 20})
				c := reqctx.New(t.Context(), reg)
				defer c.Finish()
				c.SetRequest(r)

				other := r.WithContext(t.Context())
				_, err := io.CopyN(io.Discard, other.Body, int64(tt.read))
				require.True(t, err == nil || err == io.EOF, err)
				p, err := params.From(c)
				require.NoError(t, err)
				got, err := p.Body()
				require.ErrorIs(t, err, tt.want)
				if tt.want != nil {
					return
				}
				require.Equal(t, tt.body, string(got))
				again, err := io.ReadAll(other.Body)
				require.NoError(t, err)
				require.Equal(t, tt.body, string(again))
				require.NoError(t, other.Body.Close())
			})
		}
	}
}

// once is a body like that of net/http: closed, it cannot be read.
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
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.ContentLength = &once{Reader: strings.NewReader("a=1")}, 3
	params.Share(r, nil)
	reg := reqctx.NewRegistry(reqctx.Options{})
	params.Provide(reg, params.Options{})
	c := reqctx.New(t.Context(), reg)
	defer c.Finish()
	c.SetRequest(r)
	other := r.WithContext(c)
	_, err := io.ReadAll(other.Body)
	require.NoError(t, err)
	require.NoError(t, other.Body.Close())
	p, err := params.From(c)
	require.NoError(t, err)
	a, err := p.String("a")
	require.NoError(t, err)
	require.Equal(t, "1", a)
}

func TestShareLeavesARequestWithoutBody(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Body = body
		params.Share(r, nil)
		require.Equal(t, body, r.Body)
	}
}
