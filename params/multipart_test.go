package params

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// form returns a request with a multipart form. parts are names and contents in turn. A name with a slash, such as
// "photo/cat.png", makes a file.
func form(t testing.TB, parts ...string) *http.Request {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		name, file, isFile := strings.Cut(parts[i], "/")
		var part io.Writer
		var err error
		if isFile {
			part, err = w.CreateFormFile(name, file)
		} else {
			part, err = w.CreateFormField(name)
		}
		require.NoError(t, err)
		require.NoError(t, failure(io.WriteString(part, parts[i+1])))
	}
	require.NoError(t, w.Close())
	return post("/", w.FormDataContentType(), b.String())
}

// rawForm returns a request with a multipart form that consists of lines. The boundary is b.
func rawForm(lines ...string) *http.Request {
	return post("/", "multipart/form-data; boundary=b", strings.Join(lines, "\r\n"))
}

func contentOfFile(t testing.TB, f *File) string {
	t.Helper()
	data := value(io.ReadAll(f.Open()))
	require.EqualValues(t, len(data), f.Size)
	return string(data)
}

// TestFormThatIsCutOff cuts off a form at each byte before its closing boundary. The form must be refused.
func TestFormThatIsCutOff(t *testing.T) {
	const whole = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\nContent-Type: text/plain\r\n\r\n2\r\n--b--"
	for _, end := range []string{"", "\r\n", "\r\nepilogue"} {
		require.NoError(t, failure(paramsOf(t, rawForm(whole+end), Options{}).File("f")), end)
	}
	for n := 1; n < len(whole); n++ {
		e := requireReason(t, failure(paramsOf(t, rawForm(whole[:n]), Options{}).Form().String("a")), ErrMalformed, "")
		require.Contains(t, []string{"is a multipart form that ends too early", "is not a valid multipart form",
			"has a part without a name"}, e.Detail, whole[:n])
	}
}

func TestMultipartForm(t *testing.T) {
	large := strings.Repeat("x", 3*fileBuffer)
	r := form(t, "title", "Été", "photo/cat.png", "small", "tag", "a", "tag", "b", "video/cat.mp4", large, "n", "7")
	p := paramsOf(t, r, Options{TempDir: t.TempDir()})
	require.Equal(t, "Été", value(p.String("title")))
	require.Equal(t, 7, value(p.Form().Int("n")))
	require.Equal(t, []string{"a", "b"}, value(p.Content().Strings("tag")))

	photo := value(p.File("photo"))
	require.Equal(t, "small", contentOfFile(t, photo))
	require.Equal(t, []string{"photo", "cat.png", "application/octet-stream"}, []string{photo.Name, photo.FileName, photo.ContentType})
	require.IsType(t, &bytes.Reader{}, photo.content)
	video := value(p.File("video"))
	require.IsType(t, &os.File{}, video.content)
	require.Equal(t, large, contentOfFile(t, video))
	require.Equal(t, large, contentOfFile(t, video), "again")
	tail := make([]byte, 3)
	require.NoError(t, failure(video.Open().ReadAt(tail, video.Size-3)))
	require.Equal(t, "xxx", string(tail))

	requireReason(t, failure(p.File("title")), ErrMissing, `form parameter "title" is missing`)
	require.ErrorIs(t, failure(p.Body()), ErrBodyTaken)
	require.ErrorIs(t, failure(p.Stream()), ErrBodyTaken)
	require.Error(t, r.ParseMultipartForm(1<<20), "it isn't taken for an empty form")
}

func TestBudgetOfAForm(t *testing.T) {
	for text, r := range map[string]*http.Request{
		"has more than 3 parts":               form(t, "a", "", "b", "", "c/c", "", "d/d", ""),
		"has more than 2 parameters":          form(t, "a", "", "b", "", "c", ""),
		`"f" is larger than 20 bytes`:         form(t, "f/f", strings.Repeat("x", 21)),
		"has more than 30 bytes of text":      form(t, "a", strings.Repeat("x", 15), "b", strings.Repeat("x", 16)),
		"is larger than 800 bytes":            form(t, "a", strings.Repeat("x", 800)),
		"with a header of more than 16384":    form(t, strings.Repeat("x", 17<<10), ""),
		"a header of more than 16384 bytes":   post("/", "multipart/form-data; boundary=b", strings.Repeat("x\r\n", 10_000)),
		"part with a header of more than 163": rawForm("--b", strings.Repeat("A: b\r\n", 5000)),
	} {
		o := Options{MaxParts: 3, MaxParams: 2, MaxFile: 20, MaxBody: 30, MaxStream: 800}
		if strings.Contains(text, "header") {
			o.MaxStream = 1 << 20
		}
		p := paramsOf(t, r, o)
		require.Equal(t, 413, statusOf(t, requireReason(t, failure(p.String("a")), ErrTooLarge, text)))
	}
	p := paramsOf(t, form(t, "a", strings.Repeat("x", 15), "b", strings.Repeat("x", 15), "f/f", strings.Repeat("x", 20)),
		Options{MaxParts: 3, MaxParams: 2, MaxFile: 20, MaxBody: 30, MaxStream: 800})
	require.NoError(t, failure(p.String("a")))
	require.EqualValues(t, 20, value(p.File("f")).Size, "it went to disk, since the memory is used up")
}

func TestFaultyForms(t *testing.T) {
	const head = `Content-Disposition: form-data; name="a"`
	for text, r := range map[string]*http.Request{
		"is a multipart form that ends too early":              rawForm("--b", head, "", "x"),
		"is a multipart form that ends too early ":             rawForm("--b", head, "", "x", "--b"),
		"is a multipart form that ends too early  ":            rawForm("nothing"),
		"is not a valid multipart form":                        rawForm("--b", "no header", "", "x", "--b--"),
		"has a part without a name":                            rawForm("--b", "", "x", "--b--"),
		"has a part without a name ":                           rawForm("--b", "Content-Disposition: form-data", "", "x", "--b--"),
		"has a part without a name  ":                          rawForm("--b", `Content-Disposition: attachment; name="a"`, "", "x", "--b--"),
		"has a part without a name   ":                         rawForm("--b", `Content-Disposition: form-data; name="a`, "", "x", "--b--"),
		"more than one Content-Disposition":                    rawForm("--b", head, head, "", "x", "--b--"),
		"more than one Content-Type":                           rawForm("--b", head, "Content-Type: a/b", "Content-Type: a/b", "", "x", "--b--"),
		"more than one Content-Transfer-Encoding":              rawForm("--b", head, "Content-Transfer-Encoding: 7bit", "Content-Transfer-Encoding: 7bit", "", "x", "--b--"),
		"whose name is not valid UTF-8":                        rawForm("--b", "Content-Disposition: form-data; name=\"\xff\"", "", "x", "--b--"),
		`form parameter "a" is not valid UTF-8`:                rawForm("--b", head, "", "\xff", "--b--"),
		`form parameter "a" has a NUL byte`:                    rawForm("--b", head, "", "\x00", "--b--"),
		`form parameter "a" has a file name that is not valid`: rawForm("--b", head+"; filename=\"\xff\"", "", "x", "--b--"),
		`form parameter "a" has a malformed Content-Type`:      rawForm("--b", head, "Content-Type: ;", "", "x", "--b--"),
	} {
		requireReason(t, failure(paramsOf(t, r, Options{}).String("a")), ErrMalformed, strings.TrimSpace(text))
	}
	for text, r := range map[string]*http.Request{
		`"a" has the charset "latin1"; send UTF-8`:    rawForm("--b", head, "Content-Type: text/plain; charset=latin1", "", "x", "--b--"),
		`"a" has a content transfer encoding`:         rawForm("--b", head, "Content-Transfer-Encoding: base64", "", "eA==", "--b--"),
		`"a" has a content transfer encoding, which `: rawForm("--b", head, "Content-Transfer-Encoding: quoted-printable", "", "=41", "--b--"),
	} {
		require.Equal(t, 415, statusOf(t, requireReason(t, failure(paramsOf(t, r, Options{}).String("a")), ErrUnsupported, text)))
	}
	a := value(paramsOf(t, rawForm("--b", head, "Content-Type: text/plain; charset=UTF-8", "Content-Transfer-Encoding: 8BIT", "", "é", "--b--", "epilogue"), Options{}).String("a"))
	require.Equal(t, "é", a)
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"cat.png": "cat.png", "/etc/passwd": "passwd", `C:\\dir\\cat.png`: "cat.png", "../../x": "x", "..": "", ".": "", "/": "", "a/..": "", "": "",
	} {
		r := rawForm("--b", `Content-Disposition: form-data; name="f"; filename="`+name+`"`, "", "x", "--b--")
		require.Equal(t, want, value(paramsOf(t, r, Options{}).File("f")).FileName, name)
	}
	r := rawForm("--b", `Content-Disposition: form-data; name="f"; filename*=UTF-8''%e2%82%ac.txt`, "", "x", "--b--")
	require.Equal(t, "€.txt", value(paramsOf(t, r, Options{}).File("f")).FileName)
}

func TestPartsOneByOne(t *testing.T) {
	large := strings.Repeat("x", 300_000)
	var got []string
	handle(form(t, "a", "1", "f/f.bin", large, "g/g.bin", large, "b", "2", "h/h.bin", large), Options{TempDir: t.TempDir()}, func(p *Params) {
		var before *Part
		for part, err := range p.Parts() {
			require.NoError(t, err)
			if before != nil {
				require.Error(t, failure(before.Read(make([]byte, 1))), "the content of an earlier part is gone")
			}
			before = part
			switch part.Name {
			case "a", "b":
				text := value(part.Text())
				got = append(got, part.Name+text)
			case "f":
				n := value(io.Copy(io.Discard, part))
				got = append(got, fmt.Sprint(part.FileName, n))
			case "h":
				f := value(part.Save())
				require.Equal(t, large, contentOfFile(t, f))
				require.IsType(t, &os.File{}, f.content)
				got = append(got, fmt.Sprint(f.FileName, f.Size))
			}
		}
		_, err := p.File("f")
		require.ErrorIs(t, err, ErrBodyTaken)
		for _, err := range p.Parts() {
			require.ErrorIs(t, err, ErrBodyTaken)
		}
	})
	require.Equal(t, []string{"a1", "f.bin300000", "b2", "h.bin300000"}, got)
}

func TestPartsAreReadAsTheyCome(t *testing.T) {
	r := form(t, "a", "1", "f/f", strings.Repeat("x", 1<<20))
	body := watch(r)
	for part, err := range paramsOf(t, r, Options{}).Parts() {
		require.NoError(t, err)
		require.Equal(t, "a", part.Name)
		break
	}
	require.LessOrEqual(t, body.reads, 2)
}

func TestPartsOfOtherBodies(t *testing.T) {
	count := func(r *http.Request) (n int, err error) {
		for _, err = range paramsOf(t, r, Options{}).Parts() {
			n++
		}
		return n, err
	}
	n, err := count(postForm("/", "a=1"))
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorIs(t, failure(count(httptest.NewRequest("POST", "/", nil))), ErrUnsupported)
	r := form(t)
	r.Body = http.NoBody
	require.Zero(t, value(count(r)))
	e := requireReason(t, failure(paramsOf(t, postJSON("{}"), Options{}).File("f")), ErrUnsupported, "accepted is multipart/form-data")
	require.Equal(t, []string{multipartType}, e.accepted)
}

func TestFormAfterBody(t *testing.T) {
	r := form(t, "a", "1", "f/f", "data")
	p := paramsOf(t, r, Options{})
	require.Contains(t, string(value(p.Body())), "data")
	require.Equal(t, 1, value(p.Int("a")))
	require.Equal(t, "data", contentOfFile(t, value(p.File("f"))))
	require.NoError(t, r.ParseMultipartForm(1<<20), "the body was put back")
	require.Equal(t, "1", r.FormValue("a"))
}

// A form is read to its end, so that the connection can be used again and a body that was cut off is noticed.
func TestFormIsReadToItsEnd(t *testing.T) {
	epilogue := strings.Repeat("x", 10_000)
	r := rawForm("--b", `Content-Disposition: form-data; name="a"`, "", "1", "--b--", epilogue)
	body := watch(r)
	require.Equal(t, "1", value(paramsOf(t, r, Options{}).String("a")))
	n, err := body.Reader.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, n)

	r = rawForm("--b", `Content-Disposition: form-data; name="a"`, "", "1", "--b--", "")
	r.Body = io.NopCloser(io.MultiReader(r.Body, iotest.ErrReader(io.ErrUnexpectedEOF)))
	require.ErrorIs(t, failure(paramsOf(t, r, Options{}).String("a")), ErrInterrupted)
	r = rawForm("--b", `Content-Disposition: form-data; name="a"`, "", "1", "--b--", epilogue)
	r.ContentLength = -1
	require.ErrorIs(t, failure(paramsOf(t, r, Options{MaxStream: 9000}).String("a")), ErrTooLarge)
}

// withoutEmpty returns the texts that are not empty.
func withoutEmpty(texts []string) []string {
	var rest []string
	for _, text := range texts {
		if text != "" {
			rest = append(rest, text)
		}
	}
	return rest
}

// FuzzMultipart checks that a form that the package accepts has the same texts and files for the standard library.
func FuzzMultipart(f *testing.F) {
	const head = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
	for _, seed := range []string{
		"", head + "1\r\n--b--", head + "1\r\n" + head + "2\r\n--b--\r\n", head + "1", "--b--", "preamble\r\n" + head + "x\r\n--b--epilogue",
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\nContent-Type: text/plain\r\n\r\ndata\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=f; filename*=UTF-8''%41\r\n\r\n\r\n--b--", "--b\n\nx\n--b--", head + "\xff\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n--b--",
	} {
		f.Add([]byte(seed))
	}
	o := *testOptions()
	o.MaxBody, o.MaxFile = 300, 200
	f.Fuzz(func(t *testing.T, body []byte) {
		u, err := paramsOf(t, rawForm(string(body)), o).upload()
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			return
		}
		want, err := multipart.NewReader(bytes.NewReader(body), "b").ReadForm(1 << 20)
		require.NoError(t, err, "accepted %q", body)
		defer func() { require.NoError(t, want.RemoveAll()) }()
		got := map[string][]string{}
		for _, p := range u.pairs {
			if p.name != "" {
				got[p.name] = append(got[p.name], p.value)
			}
		}
		for name, headers := range want.File {
			files := findFiles(u.files, name).files
			require.Len(t, files, len(headers), "%q", body)
			for i, f := range files {
				require.Equal(t, headers[i].Size, f.Size)
			}
		}
		for name, values := range want.Value {
			if len(findFiles(u.files, name).files) > 0 {
				continue // the standard library takes a file without a name for a text
			}
			texts := got[name]
			if bytes.Contains(bytes.ToLower(body), []byte("filename")) { // it also takes a file that was not chosen for an empty text
				values, texts = withoutEmpty(values), withoutEmpty(texts)
			}
			require.Equal(t, values, append([]string(nil), texts...), "%q", body)
		}
	})
}
