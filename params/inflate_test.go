package params

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func gzipped(data string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, data)
	_ = w.Close()
	return b.String()
}

func zlibbed(data string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = io.WriteString(w, data)
	_ = w.Close()
	return b.String()
}

// coded returns a POST request with a Content-Encoding. The body is already encoded.
func coded(contentType, coding, body string) *http.Request {
	r := post("/", contentType, body)
	r.Header.Set("Content-Encoding", coding)
	return r
}

func TestCodedBodies(t *testing.T) {
	text := strings.Repeat("a=1&", 200) + "b=é"
	for coding, body := range map[string]string{
		"gzip": gzipped(text), "GZIP": gzipped(text), "x-gzip": gzipped(text), "deflate": zlibbed(text),
		"gzip ": gzipped(text[:300]) + gzipped(text[300:]),
	} {
		r := coded(formType, strings.TrimSpace(coding), body)
		p := paramsOf(t, r, Options{})
		require.Equal(t, "é", value(p.String("b")), coding)
		require.Equal(t, text, string(value(p.Body())))
		require.Equal(t, body, string(value(io.ReadAll(r.Body))), "what is put back fits the header")
	}
	n, err := Bind[struct {
		N int `json:"n"`
	}](newContext(t, coded(jsonType, "gzip", gzipped(`{"n":7}`)), Options{}))
	require.NoError(t, err)
	require.Equal(t, 7, n.N)

	r := form(t, "a", "1", "f/f", "data")
	raw := value(io.ReadAll(r.Body))
	f := value(paramsOf(t, coded(r.Header.Get("Content-Type"), "gzip", gzipped(string(raw))), Options{}).File("f"))
	require.Equal(t, "data", contentOfFile(t, f))
}

func TestFaultyCodings(t *testing.T) {
	good := gzipped("a=1")
	for body, text := range map[string]string{
		"a=1&b=2&c=3":                   "the request body is not valid gzip",
		good[:len(good)-1]:              "the request body ends too early for gzip",
		good[:5]:                        "ends too early for gzip",
		good + "x":                      "gzip",
		good[:len(good)-8] + "xxxxxxxx": "is not valid gzip",
	} {
		requireReason(t, failure(paramsOf(t, coded(formType, "gzip", body), Options{}).String("a")), ErrMalformed, text)
	}
	_, err := paramsOf(t, coded(formType, "deflate", zlibbed("a=1")+"x"), Options{}).String("a")
	requireReason(t, err, ErrMalformed, "has more after its deflate content")
	var raw bytes.Buffer
	w, _ := flate.NewWriter(&raw, 5)
	_, _ = io.WriteString(w, "a=1")
	_ = w.Close()
	requireReason(t, failure(paramsOf(t, coded(formType, "deflate", raw.String()), Options{}).String("a")), ErrMalformed, "is not valid deflate")

	r := coded(formType, "gzip", "")
	r.ContentLength = -1
	require.Equal(t, "none", value(paramsOf(t, r, Options{}).StringOr("a", "none")), "nothing is nothing")
}

func TestBothSizesAreBounded(t *testing.T) {
	o := Options{MaxBody: 1000, MaxStream: 1000}
	large := strings.Repeat("x", 1001)
	random := strings.Repeat(gzipped("x"), 60) // more than 1,000 bytes, which inflate to 60
	for body, text := range map[string]string{gzipped(large): "is larger than 1000 bytes", random: "is larger than 1000 bytes"} {
		for _, length := range []int64{-1, int64(len(body))} {
			r := coded("text/plain", "gzip", body)
			r.ContentLength = length
			requireReason(t, failure(paramsOf(t, r, o).Body()), ErrTooLarge, text)

			r = coded("text/plain", "gzip", body)
			r.ContentLength = length
			s, err := paramsOf(t, r, o).Stream()
			if err == nil {
				_, err = io.ReadAll(s)
			}
			requireReason(t, err, ErrTooLarge, text)
		}
	}
	require.Len(t, value(paramsOf(t, coded("text/plain", "gzip", gzipped(large[1:])), o).Body()), 1000)
}

func TestInterruptedCodedBody(t *testing.T) {
	text := strings.Repeat("a=1&", 100)
	for body, coding := range map[string]string{gzipped(text)[:20]: "gzip", zlibbed(text): "deflate"} {
		r := coded(formType, coding, "")
		r.ContentLength = -1
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)))
		requireReason(t, failure(paramsOf(t, r, Options{}).String("a")), ErrInterrupted, "ended before it was complete")
	}
}

func TestStream(t *testing.T) {
	for _, r := range []*http.Request{post("/", "text/plain", "hello"), coded("text/plain", "gzip", gzipped("hello"))} {
		p := paramsOf(t, r, Options{MaxBody: 1})
		s := value(p.Stream())
		require.Equal(t, "hello", string(value(io.ReadAll(s))))
		require.ErrorIs(t, failure(p.Stream()), ErrBodyTaken)
		require.ErrorIs(t, failure(p.Body()), ErrBodyTaken)
		require.ErrorIs(t, failure(io.ReadAll(r.Body)), ErrBodyTaken, "others learn of it")
	}
	p := paramsOf(t, post("/", "text/plain", "hello"), Options{})
	require.NoError(t, failure(p.Body()))
	for range 2 {
		s := value(p.Stream())
		require.Equal(t, "hello", string(value(io.ReadAll(s))), "what is held can be streamed")
	}
	require.Empty(t, value(io.ReadAll(value(paramsOf(t, getRequest(""), Options{}).Stream()))))

	r := post("/", "text/plain", strings.Repeat("x", 200))
	body := watch(r)
	_, err := paramsOf(t, r, Options{MaxStream: 100}).Stream()
	require.ErrorIs(t, err, ErrTooLarge)
	require.Zero(t, body.reads, "refused for its declared length")
	require.ErrorIs(t, failure((&Params{err: errNoParams}).Stream()), errNoParams)
}

func TestStreamOfASharedBody(t *testing.T) {
	r := post("/", "text/plain", "hello")
	Share(r, nil)
	require.NoError(t, failure(r.Body.Read(make([]byte, 2))))
	require.ErrorIs(t, failure(paramsOf(t, r, Options{}).Stream()), ErrBodyTaken)

	r = postForm("/", "a=1")
	Share(r, nil)
	require.NoError(t, r.ParseForm())
	s := value(paramsOf(t, r, Options{}).Stream())
	require.Equal(t, "a=1", string(value(io.ReadAll(s))), "a form that ParseForm has read is still there")
}
