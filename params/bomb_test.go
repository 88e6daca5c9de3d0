package params

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// maxLive is the number of bytes by which a bomb may make the live heap grow.
const maxLive = 2 << 20

// live returns the size of the live heap in bytes.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// peak measures by how much the live heap grows.
type peak struct {
	base  uint64 // the size at the start
	most  uint64 // the largest growth so far
	since uint64 // bytes read since the last measurement
}

func (p *peak) measure() {
	p.since = 0
	if now := live(); now > p.base {
		p.most = max(p.most, now-p.base)
	}
}

// gauge is a reader that measures the live heap after each 64 KB.
type gauge struct {
	io.Reader
	*peak
}

func (g gauge) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if g.since += uint64(n); g.since >= 64<<10 {
		g.measure()
	}
	return n, err
}

// node is a large struct that contains a list of its own type. A form can make many nodes.
type node struct {
	C   []node    `form:"c"`
	V   string    `form:"v"`
	Fat [100]bool `params:"-"`
}

// jsonNode is a node for JSON bodies.
type jsonNode struct {
	C   []jsonNode `json:"c"`
	N   int        `json:"n" max:"9"`
	Fat [100]bool  `json:"-"`
}

// endless is a reader that repeats a text.
type endless struct {
	text string
	at   int // the next byte in text
	left int // remaining repetitions
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at == len(e.text) {
		e.at = 0
		if e.left--; e.left == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, e.text[e.at:])
	e.at += n
	return n, nil
}

// cut repeats a text up to a length of 20 KB.
func cut(text string) string { return strings.Repeat(text, 20<<10/len(text)) }

func TestBombs(t *testing.T) {
	type photos struct {
		Photo *File `form:"photo"`
	}
	zeros := gzipped(strings.Repeat("\x00", 10<<20)) // 10 KB
	part := "\r\n--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"x\"\r\n\r\nx"
	many := func(unit string) string {
		var b strings.Builder
		for i := 0; b.Len() < 20<<10; i++ {
			fmt.Fprintf(&b, unit, i)
		}
		return b.String()
	}
	for name, bomb := range map[string]struct {
		contentType, coding string
		body                io.Reader
		bind                func(*Params) error
		status              int
	}{
		"20 KB form of names":          {formType, "", strings.NewReader(cut("v&")), tryKept[node], 413},
		"20 KB form of elements":       {formType, "", strings.NewReader(many("c.%d.v&")), tryKept[node], 413},
		"20 KB form of large numbers":  {formType, "", strings.NewReader(many("c.99999999.c.999%d.c.9.v=&")), tryKept[node], 0},
		"20 KB form, deep":             {formType, "", strings.NewReader(cut("c.999.") + "v=1"), tryKept[node], 413},
		"20 KB form, many and deep":    {formType, "", strings.NewReader(many(strings.Repeat("c.%[1]d.", 60) + "v=&")), tryKept[node], 0},
		"10 MB of zeros in 10 KB":      {jsonType, "gzip", strings.NewReader(zeros), tryJSON[any], 413},
		"10 MB gzip of zeros":          {jsonType, "gzip", &endless{text: zeros, left: 1000}, tryJSON[any], 413},
		"10 MB gzip, multipart":        {"multipart/form-data; boundary=b", "gzip", &endless{text: zeros, left: 1000}, tryKept[photos], 400},
		"10,000 nested arrays":         {jsonType, "", strings.NewReader(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), tryJSON[any], 413},
		"10,000 nested objects":        {jsonType, "", strings.NewReader(strings.Repeat(`{"c":[`, 10_000)), tryJSON[jsonNode], 413},
		"1 MB of empty objects":        {jsonType, "", &endless{text: cut(`{},`), left: 50}, tryJSON[jsonNode], 400},
		"1 MB of elements":             {jsonType, "", io.MultiReader(strings.NewReader(`{"c":[`), &endless{text: cut(`{},`), left: 50}), tryJSON[jsonNode], 413},
		"1 MB of empty arrays":         {jsonType, "", io.MultiReader(strings.NewReader("["), &endless{text: cut(`[],`), left: 50}), tryJSON[any], 413},
		"1 MB in a deep value":         {jsonType, "", strings.NewReader(strings.Repeat(`{"c":[`, 30) + `{"n":"` + strings.Repeat("x", 900<<10) + `"}` + strings.Repeat("]}", 30)), tryJSON[jsonNode], 400},
		"100,000 parts":                {"multipart/form-data; boundary=b", "", &endless{text: part, left: 100_000}, tryKept[photos], 413},
		"parts of headers":             {"multipart/form-data; boundary=b", "", io.MultiReader(strings.NewReader("--b\r\n"), &endless{text: cut("a:\r\n"), left: 1 << 20}), tryKept[photos], 413},
		"a preamble without end":       {"multipart/form-data; boundary=b", "", &endless{text: cut("x\r\n"), left: 1 << 20}, tryKept[photos], 413},
		"a body without end":           {formType, "", &endless{text: cut("a"), left: 1 << 30}, tryKept[node], 413},
		"a file without end":           {"multipart/form-data; boundary=b", "", io.MultiReader(strings.NewReader(part), &endless{text: cut("x"), left: 1 << 20}), tryKept[photos], 413},
		"a text without end":           {"multipart/form-data; boundary=b", "", io.MultiReader(strings.NewReader(strings.Replace(part, "filename", "n", 1)), &endless{text: cut("x"), left: 1 << 20}), tryKept[photos], 413},
		"a query of 20 KB of elements": {"", "", nil, nil, 414},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			if bomb.bind == nil {
				r.URL.RawQuery = cut("q=&")
				bomb.bind = tryKept[struct {
					Q []string `query:"q"`
				}]
			}
			g := &peak{base: live()}
			if bomb.body != nil {
				r.Body, r.ContentLength = io.NopCloser(gauge{bomb.body, g}), -1
				r.Header.Set("Content-Type", bomb.contentType)
				r.Header.Set("Content-Encoding", bomb.coding)
			}
			p := paramsOf(t, r, Options{TempDir: t.TempDir(), ReadTimeout: -1})
			err := bomb.bind(p)
			g.measure()
			require.Less(t, g.most, uint64(maxLive))
			t.Logf("%d KB at most, %v", g.most>>10, shorten(fmt.Sprint(err)))
			if bomb.status == 0 {
				require.NoError(t, err)
			} else {
				require.Equal(t, bomb.status, statusOf(t, err), err)
			}
			runtime.KeepAlive(p)
		})
	}
}

// tryJSON decodes the JSON body of p's request, and keeps the value.
func tryJSON[T any](p *Params) error { return keep(JSON[T](p.ctx)) }

// tryKept binds a T from p's request, and keeps the value.
func tryKept[T any](p *Params) error { return keep(Bind[T](p.ctx)) }

// kept is the value that was made from the last bomb. It must be part of the live heap when that is measured.
var kept any

func keep[T any](v T, err error) error {
	kept = v
	return err
}

func statusOf(t testing.TB, err error) int {
	t.Helper()
	var got interface {
		Problem() (int, map[string]any)
	}
	require.True(t, errors.As(err, &got), err)
	status, _ := got.Problem()
	return status
}

// drip is a body that returns one byte per second.
type drip struct{ io.Reader }

func (d drip) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	return d.Reader.Read(p[:min(len(p), 1)])
}

func (d drip) Close() error { return nil }

func TestSlowBody(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, body string
		o                 Options
		took              time.Duration
		status            int
	}{
		"form":                {formType, strings.Repeat("a", 100), Options{}, 31 * time.Second, 408},
		"JSON":                {jsonType, strings.Repeat(" ", 100), Options{}, 31 * time.Second, 408},
		"multipart":           {"multipart/form-data; boundary=b", "--b\r\nA: " + strings.Repeat("a", 100), Options{}, 31 * time.Second, 408},
		"coded":               {"gzip", gzipped(strings.Repeat("abcdefghijklmnopqrst", 2)), Options{ReadTimeout: 20 * time.Second}, 21 * time.Second, 408},
		"in time":             {formType, strings.Repeat("a", 28), Options{}, 29 * time.Second, 0},
		"of a patient server": {formType, strings.Repeat("a", 500), Options{ReadTimeout: -1}, 501 * time.Second, 0},
		"of an impatient one": {formType, strings.Repeat("a", 500), Options{ReadTimeout: 2 * time.Second}, 3 * time.Second, 408},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := streamOf(drip{strings.NewReader(tt.body)})
				r.Header.Set("Content-Type", tt.contentType)
				if tt.contentType == "gzip" {
					r.Header.Set("Content-Type", formType)
					r.Header.Set("Content-Encoding", "gzip")
				}
				began := time.Now()
				_, err := paramsOf(t, r, tt.o).StringOr("none", "")
				require.Equal(t, tt.took, time.Since(began))
				if tt.status == 0 {
					require.NoError(t, err)
					return
				}
				require.Equal(t, tt.status, statusOf(t, err))
				requireReason(t, err, ErrInterrupted, "was not received in time")
			})
		})
	}
}

func TestSlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := value(paramsOf(t, streamOf(drip{strings.NewReader(strings.Repeat("a", 100))}), Options{}).Stream())
		data, err := io.ReadAll(s)
		require.Equal(t, http.StatusRequestTimeout, statusOf(t, err))
		require.Len(t, data, 31)
	})
}
