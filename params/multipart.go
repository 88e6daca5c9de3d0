package params

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"mime"
	"mime/multipart"
	"path/filepath"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
)

// maxPartHeader bounds the header of a part and everything between it and the content before.
const maxPartHeader = 16 << 10

// A Part is a part of a multipart form that is being received: a text, or a file. It is an [io.Reader] of its
// content until the next part is read.
type Part struct {
	Name        string // of the parameter
	IsFile      bool
	FileName    string // the client's name for the file, without a folder, or ""
	ContentType string // the client's claim, or ""

	from    *partReader
	content limited
}

// Parts iterates over the parts of a multipart form while it is received, so that no file has to be stored. It ends after
// the first error. The body can be read only once: by one call of Parts, or by the views of the body. All others return
// [ErrBodyTaken]. If the loop is left early, the rest stays unread.
//
//	for part, err := range p.Parts() {
//		if err != nil {
//			return err
//		}
//		if part.IsFile {
//			n, err := io.Copy(dst, part)
//
// The budget limits the parts, the bytes of a file, and the bytes of all texts together.
func (p *Params) Parts() iter.Seq2[*Part, error] {
	return func(yield func(*Part, error) bool) {
		pr, err := p.partReader()
		for err == nil {
			var part *Part
			if part, err = pr.next(); err == nil && !yield(part, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(nil, err)
		}
	}
}

// A partReader reads the parts of a multipart form, within the budget.
type partReader struct {
	source  limited // limits the bytes before a part's content; package multipart would hold up to 10 MB of them
	reader  *multipart.Reader
	options *Options
	ctx     *reqctx.Context // the request context, which removes the files
	parts   int
	texts   int64 // bytes left for texts
	current *Part
}

// partReader begins to read a multipart form. It returns io.EOF if there is no body.
func (p *Params) partReader() (*partReader, error) {
	body, err := p.stream(multipartKind)
	if err != nil {
		return nil, err
	}
	_, c, _ := p.describe()
	if c.none {
		return nil, io.EOF
	}
	o := p.options()
	pr := &partReader{ctx: p.ctx, options: o, texts: o.MaxBody}
	pr.source = newLimited(body, maxPartHeader, func(limit int64) *Error {
		return formTooLargeError("", "has a part with a header of more than %d bytes", limit)
	})
	pr.reader = multipart.NewReader(&formBody{from: &pr.source, lineEnd: "\r\n"}, c.boundary)
	return pr, nil
}

// formBody ends with a line end and io.ErrUnexpectedEOF. With io.EOF, [multipart.Reader] would accept a form that
// is cut off within the header of a part. The closing boundary may come without its line end.
type formBody struct {
	from    io.Reader
	lineEnd string
}

func (f *formBody) Read(b []byte) (int, error) {
	n, err := f.from.Read(b)
	if err != io.EOF {
		return n, err
	}
	if n == 0 {
		n = copy(b, f.lineEnd)
		f.lineEnd = f.lineEnd[n:]
	}
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

// next returns the next part, or io.EOF.
func (pr *partReader) next() (*Part, error) {
	if pr.current != nil { // its rest counts as content, not as the next header
		if _, err := io.Copy(io.Discard, pr.current); err != nil {
			return nil, err
		}
	}
	pr.source.left = maxPartHeader
	raw, err := pr.reader.NextRawPart()
	pr.source.left = math.MaxInt64
	switch {
	case err == io.EOF: // the budget also applies to the bytes after the last part
		if _, err := io.Copy(io.Discard, &pr.source); err != nil {
			return nil, err
		}
		return nil, io.EOF
	case err != nil:
		return nil, pr.bodyError(err)
	case pr.parts == pr.options.MaxParts:
		return nil, formTooLargeError("", "has more than %d parts", int64(pr.parts))
	}
	pr.parts++
	pr.current, err = pr.newPart(raw)
	return pr.current, err
}

// newPart reads the header of a part.
func (pr *partReader) newPart(raw *multipart.Part) (*Part, error) {
	for _, name := range [...]string{"Content-Disposition", "Content-Type", "Content-Transfer-Encoding"} {
		if len(raw.Header[name]) > 1 {
			return nil, malformedError(SourceForm, "", "has a part with more than one "+name)
		}
	}
	disposition, attributes, err := mime.ParseMediaType(raw.Header.Get("Content-Disposition"))
	name, hasName := attributes["name"]
	if err != nil || disposition != "form-data" || !hasName {
		return nil, malformedError(SourceForm, "", "has a part without a name")
	}
	fileName, isFile := attributes["filename"]
	part := &Part{Name: name, IsFile: isFile, FileName: baseName(fileName), ContentType: raw.Header.Get("Content-Type"), from: pr}
	fault := textProblem(fileName)
	if fault != "" {
		fault = "has a file name that " + fault
	}
	if err := pairError(SourceForm, name, textProblem(name), fault); err != nil {
		return nil, err
	}
	limit, over := pr.texts, func(int64) *Error {
		return formTooLargeError("", "has more than %d bytes of text", pr.options.MaxBody)
	}
	if isFile {
		limit, over = pr.options.MaxFile, func(limit int64) *Error { return formTooLargeError(name, "is larger than %d bytes", limit) }
	}
	part.content = newLimited(raw, limit, over)
	return part, part.checkHeader(raw.Header.Get("Content-Transfer-Encoding"))
}

// checkHeader refuses headers that readers interpret differently.
func (p *Part) checkHeader(transferEncoding string) error {
	switch strings.ToLower(transferEncoding) {
	case "", "7bit", "8bit", "binary":
	default:
		return newError(ErrUnsupported, SourceForm, p.Name, "has a content transfer encoding, which RFC 7578 deprecates")
	}
	if p.IsFile || p.ContentType == "" {
		return nil
	}
	_, attributes, err := mime.ParseMediaType(p.ContentType)
	if err != nil {
		return malformedError(SourceForm, p.Name, "has a malformed Content-Type")
	}
	if fault := charsetProblem(attributes); fault != "" {
		return newError(ErrUnsupported, SourceForm, p.Name, fault)
	}
	return nil
}

// baseName returns the last element of a path of any system, or "" if it can't be the name of a file.
func baseName(name string) string {
	name = filepath.Base(name[strings.LastIndexAny(name, `/\`)+1:])
	if name == "." || name == ".." || name == string(filepath.Separator) {
		return ""
	}
	return name
}

// Read reads the part's content. It returns an [*Error] for a mistake of the client.
func (p *Part) Read(b []byte) (int, error) {
	if p.from.current != p {
		return 0, ErrBodyTaken
	}
	n, err := p.content.Read(b)
	if !p.IsFile {
		p.from.texts = p.content.left
	}
	var own *Error
	if err != nil && err != io.EOF && !errors.As(err, &own) {
		err = p.from.bodyError(err)
	}
	return n, err
}

// Text reads the rest of the part as a text. A text that is not UTF-8 or contains NUL is malformed.
func (p *Part) Text() (string, error) {
	data, err := io.ReadAll(p)
	text := string(data)
	if err == nil {
		err = pairError(SourceForm, p.Name, "", textProblem(text))
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// bodyError returns the error of the body if it has one, because that is why the parser failed.
func (pr *partReader) bodyError(err error) error {
	switch {
	case pr.source.err != nil && pr.source.err != io.EOF:
		return pr.source.err
	case errors.Is(err, io.ErrUnexpectedEOF), strings.HasSuffix(err.Error(), "EOF"):
		return malformedError(SourceForm, "", "is a multipart form that ends too early")
	}
	return malformedError(SourceForm, "", "is not a valid multipart form")
}

// formTooLargeError returns an error about a limit in the budget.
func formTooLargeError(name, detail string, limit int64) *Error {
	return newError(ErrTooLarge, SourceForm, name, fmt.Sprintf(detail, limit))
}
