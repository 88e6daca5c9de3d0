package params

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
)

const (
	benchQuery = "q=lazy+params&page=2&size=50&sort=name&exact=true"
	benchJSON  = `{"id":12345,"name":"Ada Lovelace","email":"ada@example.org","active":true,"score":98.5,` +
		`"city":"London","country":"GB","tags":["math","engines"],"visits":42,"note":"wrote the first program"}`
)

type profile struct {
	ID      int      `json:"id"`
	Name    string   `json:"name"`
	Email   string   `json:"email"`
	Active  bool     `json:"active"`
	Score   float64  `json:"score"`
	City    string   `json:"city"`
	Country string   `json:"country"`
	Tags    []string `json:"tags"`
	Visits  int      `json:"visits"`
	Note    string   `json:"note"`
}

func benchRegistry(b *testing.B) *reqctx.Registry {
	reg := reqctx.NewRegistry(reqctx.Options{})
	Provide(reg, Options{})
	return reg
}

// BenchmarkUntouched is a request whose params aren't used.
func BenchmarkUntouched(b *testing.B) {
	r := getRequest(benchQuery)
	for name, reg := range map[string]*reqctx.Registry{"without": reqctx.NewRegistry(reqctx.Options{}), "with": benchRegistry(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := reqctx.New(r.Context(), reg)
				c := &h.Context
				c.SetRequest(r)
				_ = h.Finish()
			}
		})
	}
}

// BenchmarkQuery reads five values of different types.
func BenchmarkQuery(b *testing.B) {
	r := getRequest(benchQuery)
	b.Run("params", func(b *testing.B) {
		reg := benchRegistry(b)
		b.ReportAllocs()
		for b.Loop() {
			h := reqctx.New(r.Context(), reg)
			c := &h.Context
			c.SetRequest(r)
			p, _ := From(c)
			q, err1 := p.String("q")
			page, err2 := p.Int("page")
			size, err3 := p.Int("size")
			sort, err4 := p.StringOr("sort", "id")
			exact, err5 := p.Bool("exact")
			if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil ||
				q != "lazy params" || page != 2 || size != 50 || sort != "name" || !exact {
				b.Fatal("wrong values")
			}
			_ = h.Finish()
		}
	})
	b.Run("neturl", func(b *testing.B) { // untyped, unchecked
		b.ReportAllocs()
		for b.Loop() {
			v, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil || v.Get("q") != "lazy params" || v.Get("page") != "2" || v.Get("size") != "50" ||
				v.Get("sort") != "name" || v.Get("exact") != "true" {
				b.Fatal("wrong values")
			}
		}
	})
}

type searchQuery struct {
	Q     string `query:"q"`
	Page  int    `query:"page"`
	Size  int    `query:"size"`
	Sort  string `query:"sort"`
	Exact bool   `query:"exact"`
}

// BenchmarkBindQuery binds five fields.
func BenchmarkBindQuery(b *testing.B) {
	r := getRequest(benchQuery)
	reg := benchRegistry(b)
	b.ReportAllocs()
	for b.Loop() {
		h := reqctx.New(r.Context(), reg)
		c := &h.Context
		c.SetRequest(r)
		v, err := Bind[searchQuery](c)
		if err != nil || v != (searchQuery{"lazy params", 2, 50, "name", true}) {
			b.Fatal(v, err)
		}
		_ = h.Finish()
	}
}

// BenchmarkJSON decodes ten fields from a body.
func BenchmarkJSON(b *testing.B) {
	r := postJSON("")
	r.ContentLength = int64(len(benchJSON))
	b.Run("params", func(b *testing.B) {
		reg := benchRegistry(b)
		b.ReportAllocs()
		for b.Loop() {
			r.Body = io.NopCloser(strings.NewReader(benchJSON))
			h := reqctx.New(r.Context(), reg)
			c := &h.Context
			c.SetRequest(r)
			v, err := JSON[profile](c)
			if err != nil || v.Visits != 42 {
				b.Fatal(v, err)
			}
			_ = h.Finish()
		}
	})
	b.Run("bind", func(b *testing.B) {
		reg := benchRegistry(b)
		b.ReportAllocs()
		for b.Loop() {
			r.Body = io.NopCloser(strings.NewReader(benchJSON))
			h := reqctx.New(r.Context(), reg)
			c := &h.Context
			c.SetRequest(r)
			v, err := Bind[profile](c)
			if err != nil || v.Visits != 42 {
				b.Fatal(v, err)
			}
			_ = h.Finish()
		}
	})
	b.Run("encoding", func(b *testing.B) { // accepts duplicates, bad UTF-8 and any size
		b.ReportAllocs()
		for b.Loop() {
			r.Body = io.NopCloser(strings.NewReader(benchJSON))
			var v profile
			if err := decodeAll(r, &v); err != nil || v.Visits != 42 {
				b.Fatal(v, err)
			}
		}
	})
}

func decodeAll(r *http.Request, v any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// BenchmarkMembers is what an accessor of a JSON body needs.
func BenchmarkMembers(b *testing.B) {
	data, o := []byte(benchJSON), testOptions()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := membersOf(data, o); err != nil {
			b.Fatal(err)
		}
	}
}
