package params

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"mime"
	"mime/multipart"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
)

// maxPartHeader bounds the header of a part and all that comes before it.
const maxPartHeader = 16 << 10

// A Part is a part of a multipart form that is being received: a text, or a file. It is an
// [io.Reader] of its content, until the next part is read.
type Part struct {
	Name        string // of the parameter
	IsFile      bool
	FileName    string // the client's name for it, without a folder, or ""
	ContentType string // the client's claim, or ""

	from    *partReader
	content limited
}

// Parts iterates over the parts of a multipart form while it is received, so that no file
// has to be held anywhere. It ends after the first error. The body is read only once:
// a second Parts and the views of the body return [ErrBodyTaken], as does Parts after one
// of these has read the form. The loop may be left early; the rest stays unread.
//
//	for part, err := range p.Parts() {
//		if err != nil {
//			return err
//		}
//		if part.IsFile {
//			n, err := io.Copy(dst, part)
//
// The budget applies: parts, bytes of a file, and bytes of all texts together.
func (p *Params) Parts() iter.Seq2[*Part, error] {
	return func(yield func(*Part, error) bool) {
		pr, err := p.partReader()
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			part, err := pr.next()
			if err == io.EOF {
				return
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

// partReader begins to read a multipart form.
func (p *Params) partReader() (*partReader, error) {
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	s, err := p.stream(r, multipartKind)
	if err != nil || p.contentOf(r).none {
		return nil, err
	}
	pr := newPartReader(s, p.contentOf(r).boundary, p.budgets.forRequest(r))
	pr.ctx = p.ctx
	return pr, nil
}

// A partReader reads the parts of a multipart form, within the budget. A nil partReader
// has none.
type partReader struct {
	source  limited // before a part's content, of which the parser would hold 10 MB
	reader  *multipart.Reader
	options *Options
	ctx     *reqctx.Context // of the request that files end with
	parts   int
	texts   int64 // bytes left for texts
	current *Part
}

func newPartReader(body io.Reader, boundary string, o *Options) *partReader {
	pr := &partReader{options: o, texts: o.MaxBody}
	pr.source = newLimited(body, maxPartHeader, func(limit int64) *Error {
		return formTooLargeError("", fmt.Sprintf("has a part with a header of more than %d bytes", limit))
	})
	pr.reader = multipart.NewReader(&formBody{from: &pr.source, lineEnd: "\r\n"}, boundary)
	return pr
}

// formBody ends with a line end and io.ErrUnexpectedEOF. At io.EOF, [multipart.Reader] would take
// a form that is cut off within the header of a part for a complete one. The closing boundary may
// come without its line end.
type formBody struct {
	from    io.Reader
	lineEnd string
}

func (f *formBody) Read(b []byte) (int, error) {
	n, err := f.from.Read(b)
	if err != io.EOF {
		return n, err
	}
	if n > 0 {
		return n, nil
	}
	if n = copy(b, f.lineEnd); n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	f.lineEnd = f.lineEnd[n:]
	return n, nil
}

// next returns the next part, or io.EOF.
func (pr *partReader) next() (*Part, error) {
	if pr == nil {
		return nil, io.EOF
	}
	if pr.current != nil { // its rest counts as content, not as the next header
		if _, err := io.Copy(io.Discard, pr.current); err != nil {
			return nil, err
		}
	}
	pr.source.left = maxPartHeader
	raw, err := pr.reader.NextRawPart()
	pr.source.left = math.MaxInt64
	switch {
	case err == io.EOF: // the budget also applies to what comes after the last part
		if _, err := io.Copy(io.Discard, &pr.source); err != nil {
			return nil, err
		}
		return nil, io.EOF
	case err != nil:
		return nil, pr.bodyError(err)
	case pr.parts == pr.options.MaxParts:
		return nil, formTooLargeError("", fmt.Sprintf("has more than %d parts", pr.parts))
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
	name, named := attributes["name"]
	if err != nil || disposition != "form-data" || !named {
		return nil, malformedError(SourceForm, "", "has a part without a name")
	}
	if fault := textProblem(name); fault != "" {
		return nil, malformedError(SourceForm, "", "has a parameter whose name "+fault)
	}
	part := &Part{Name: name, ContentType: raw.Header.Get("Content-Type"), from: pr}
	fileName, isFile := attributes["filename"]
	if part.IsFile = isFile; !isFile {
		part.content = newLimited(raw, pr.texts, func(int64) *Error {
			return formTooLargeError("", fmt.Sprintf("has more than %d bytes of text", pr.options.MaxBody))
		})
		return part, part.checkHeader(raw.Header)
	}
	if fault := textProblem(fileName); fault != "" {
		return nil, malformedError(SourceForm, shorten(name), "has a file name that "+fault)
	}
	part.FileName = baseName(fileName)
	part.content = newLimited(raw, pr.options.MaxFile, func(limit int64) *Error {
		return formTooLargeError(name, fmt.Sprintf("is larger than %d bytes", limit))
	})
	return part, part.checkHeader(raw.Header)
}

// checkHeader refuses what readers interpret differently.
func (p *Part) checkHeader(h textproto.MIMEHeader) error {
	coding := strings.ToLower(h.Get("Content-Transfer-Encoding"))
	if !slices.Contains([]string{"", "7bit", "8bit", "binary"}, coding) {
		return p.unsupportedError("has a content transfer encoding, which RFC 7578 took away")
	}
	if p.IsFile || p.ContentType == "" {
		return nil
	}
	_, attributes, err := mime.ParseMediaType(p.ContentType)
	if err != nil {
		return malformedError(SourceForm, shorten(p.Name), "has a malformed Content-Type")
	}
	if fault := charsetProblem(attributes); fault != "" {
		return p.unsupportedError(fault)
	}
	return nil
}

func (p *Part) unsupportedError(detail string) *Error {
	return &Error{Name: shorten(p.Name), Source: SourceForm, Reason: ErrUnsupported, Detail: detail}
}

// baseName returns the last element of a path of any system, "" if it can't be a file's.
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

// Text reads the rest of the part as a text, in UTF-8 and without NUL.
func (p *Part) Text() (string, error) {
	var b strings.Builder
	if _, err := io.Copy(&b, p); err != nil {
		return "", err
	}
	if fault := textProblem(b.String()); fault != "" {
		return "", malformedError(SourceForm, shorten(p.Name), fault)
	}
	return b.String(), nil
}

// bodyError returns the body's error if it has one, for that is why the parser failed.
func (pr *partReader) bodyError(err error) error {
	switch {
	case pr.source.err != nil && pr.source.err != io.EOF:
		return pr.source.err
	case errors.Is(err, io.ErrUnexpectedEOF), strings.HasSuffix(err.Error(), "EOF"):
		return malformedError(SourceForm, "", "is a multipart form that ends too early")
	}
	return malformedError(SourceForm, "", "is not a valid multipart form")
}

func formTooLargeError(name, detail string) *Error {
	return &Error{Name: shorten(name), Source: SourceForm, Reason: ErrTooLarge, Detail: detail}
}
