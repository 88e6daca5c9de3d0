package params

import (
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestFilesOfOneName(t *testing.T) {
	p := paramsOf(t, form(t, "f/a", "1", "f/b", "2"), Options{})
	requireReason(t, failure(p.File("f")), ErrMalformed, `form parameter "f" is given 2 times`)
	files := value(p.Files("f"))
	require.Len(t, files, 2)
	require.Equal(t, "2", contentOfFile(t, files[1]))
	require.Empty(t, value(p.Files("none")))
}

// entries returns the files in dir.
func entries(t testing.TB, dir string) []os.DirEntry {
	t.Helper()
	list := value(os.ReadDir(dir))
	return list
}

// handle runs a handler as a server does. It finishes the request even if the handler panics.
func handle(r *http.Request, o Options, handler func(p *Params)) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	Provide(reg, o)
	c := reqctx.New(r.Context(), reg)
	c.SetRequest(r)
	defer func() {
		_ = recover()
		if err := c.Finish(); err != nil {
			panic(err)
		}
	}()
	p, err := From(c)
	if err != nil {
		panic(err)
	}
	handler(p)
}

func TestFilesEndWithTheRequest(t *testing.T) {
	byFile := func(p *Params) *File { return value(p.File("a")) }
	bySave := func(p *Params) (saved *File) {
		for part, err := range p.Parts() {
			require.NoError(t, err)
			saved = value(part.Save())
		}
		return saved
	}
	for _, get := range []func(p *Params) *File{byFile, bySave} {
		for _, end := range []func(){func() {}, func() { panic("handler") }} {
			dir := t.TempDir()
			var f *File
			handle(form(t, "a/a", strings.Repeat("x", 2*fileBuffer)), Options{TempDir: dir}, func(p *Params) {
				f = get(p)
				end()
			})
			require.Empty(t, entries(t, dir))
			require.ErrorIs(t, failure(f.content.(*os.File).Stat()), os.ErrClosed)
		}
	}
}

func TestFilesOfAFormThatFails(t *testing.T) {
	large := strings.Repeat("x", 2*fileBuffer)
	dir := t.TempDir()
	o := Options{TempDir: dir, MaxFile: 3 * fileBuffer}
	p := paramsOf(t, form(t, "a/a", large, "b/b", large+large), o)
	require.Equal(t, 413, statusOf(t, requireReason(t, failure(p.File("a")), ErrTooLarge, `form parameter "b" is larger than 196608 bytes`)))
	require.Empty(t, entries(t, dir))

	r := form(t, "a/a", large, "b/b", large)
	r.Body = io.NopCloser(iotest.TimeoutReader(iotest.OneByteReader(r.Body)))
	r.ContentLength = -1
	require.ErrorIs(t, failure(paramsOf(t, r, o).File("a")), ErrInterrupted)

	_, err := paramsOf(t, form(t, "a/a", large), Options{TempDir: dir + "/none"}).File("a")
	require.ErrorIs(t, err, os.ErrNotExist)
	requireMistake(t, err, "no such file")
}

// If the user has not chosen a file, a browser sends an empty part.
func TestNoFileChosen(t *testing.T) {
	r := rawForm("--b", `Content-Disposition: form-data; name="f"; filename=""`, "Content-Type: application/octet-stream", "", "", "--b--")
	require.ErrorIs(t, failure(paramsOf(t, r, Options{}).File("f")), ErrMissing)
}

func TestBindOfFiles(t *testing.T) {
	type upload struct {
		Title  string  `form:"title" required:"true"`
		Photo  *File   `form:"photo"`
		Pages  []*File `form:"page"`
		Cover  *File   `form:"cover" required:"true"`
		Number int     `form:"n"`
	}
	got := value(Bind[upload](newContext(t, form(t, "title", "T", "photo/p", "1", "page/1", "a", "page/2", "b", "cover/c", "c", "n", "3"), Options{})))
	require.Equal(t, "1", contentOfFile(t, got.Photo))
	require.Equal(t, "b", contentOfFile(t, got.Pages[1]))
	require.Equal(t, 3, got.Number)

	require.Len(t, errorsOf(t, failure(Bind[upload](newContext(t, form(t, "photo/p", "1", "photo/q", "2"), Options{})))), 3)
	requireReason(t, failure(Bind[upload](newContext(t, postForm("/", "title=T"), Options{}))), ErrMissing, `form parameter "cover" is missing`)
}

func TestShortTextsTakeLittleMemory(t *testing.T) {
	p := paramsOf(t, form(t, slices.Repeat([]string{"a", "1"}, 100)...), Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	texts, err := p.Strings("a")
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, texts, 100)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "no large buffer for each text")
}
