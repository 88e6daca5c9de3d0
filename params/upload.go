package params

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
)

// fileBuffer is the size up to which a file is held in memory.
const fileBuffer = 64 << 10

// upload is the value of the property "params.upload": a multipart form that was
// received whole. Its files end with the request.
type upload struct {
	pairs []pair
	files []*File
}

// close releases the files.
func (u *upload) close() error {
	if u == nil {
		return nil
	}
	var errs []error
	for _, f := range u.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// File returns the file that a multipart form has under name; a body of another type is a
// 415. The form is read as a whole: files of up to 64 KiB stay in memory, as long as all
// that is held fits into Options.MaxBody, larger ones go to disk, and all are removed when
// the request ends. [Params.Parts] is for files that go elsewhere.
func (p *Params) File(name string) (*File, error) {
	files, err := p.Files(name)
	switch {
	case err != nil:
		return nil, err
	case len(files) == 0:
		return nil, missingError(SourceForm, name)
	case len(files) > 1:
		return nil, malformedError(SourceForm, name, givenTimesDetail(len(files)))
	}
	return files[0], nil
}

// Files returns all files that a multipart form has under name.
func (p *Params) Files(name string) ([]*File, error) {
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	u, err := p.upload(r)
	if err != nil {
		return nil, err
	}
	return u.filesNamed(name), nil
}

func (u *upload) filesNamed(name string) []*File {
	var files []*File
	for _, f := range u.files {
		if f.Name == name {
			files = append(files, f)
		}
	}
	return files
}

// upload returns the multipart form, received whole.
func (p *Params) upload(r *http.Request) (*upload, error) {
	c := p.contentOf(r)
	if c.none {
		return &upload{}, nil
	}
	if err := c.checkKind(multipartKind, p.budgets.forRequest(r)); err != nil {
		return nil, err
	}
	return uploadKey.Get(p.ctx)
}

func resolveUpload(ctx context.Context) (_ *upload, err error) {
	p, err := From(ctx)
	if err != nil {
		return nil, err
	}
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	o := p.budgets.forRequest(r)
	if f := r.MultipartForm; f != nil && p.way.Load() == unread {
		return uploadFromForm(f, o)
	}
	source, err := p.stream(r, multipartKind)
	if err != nil {
		return nil, err
	}
	u := &upload{}
	done := false
	defer func() { // after a panic or an error there is no other owner
		if !done {
			_ = u.close()
		}
	}()
	if err := u.receive(newPartReader(source, p.contentOf(r).boundary, o), o); err != nil {
		return nil, err
	}
	done = true
	return u, nil
}

// receive reads a form to its end.
func (u *upload) receive(pr *partReader, o *Options) error {
	memory := o.MaxBody
	for {
		part, err := pr.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case part.IsFile:
			err = u.receiveFile(part, o, &memory)
		case len(u.pairs) == o.MaxParams:
			err = tooManyError(SourceForm, o.MaxParams)
		default:
			err = u.receiveText(part, &memory)
		}
		if err != nil {
			return err
		}
	}
}

func (u *upload) receiveText(part *Part, memory *int64) error {
	text, err := part.Text()
	u.pairs = append(u.pairs, pair{part.Name, text})
	*memory -= int64(len(text))
	return err
}

// receiveFile receives a file: in memory if it is small and there is room, otherwise on disk. A
// browser sends a file without name and content if none was chosen.
func (u *upload) receiveFile(part *Part, o *Options, memory *int64) error {
	f := part.newFile()
	buffer := max(1, min(fileBuffer, *memory))
	data, err := io.ReadAll(io.LimitReader(part, buffer))
	f.Size = int64(len(data))
	if err != nil || f.Size == 0 && f.FileName == "" {
		return err
	}
	u.files = append(u.files, f)
	if f.Size == buffer {
		return f.save(io.MultiReader(bytes.NewReader(data), part), o.TempDir)
	}
	*memory -= f.Size
	f.content = bytes.NewReader(bytes.Clone(data)) // without the room to grow
	return nil
}

// Save writes the rest of the part to a file in Options.TempDir, which is removed when the
// request ends.
func (p *Part) Save() (*File, error) {
	f := p.newFile()
	p.from.ctx.OnClose(f.close)
	if err := f.save(p, p.from.options.TempDir); err != nil {
		return nil, err
	}
	return f, nil
}

func (p *Part) newFile() *File {
	return &File{Name: p.Name, FileName: p.FileName, ContentType: p.ContentType}
}

// uploadFromForm returns a form that ParseMultipartForm has received. Removing its files is up to
// the standard library. MultipartReader leaves an empty one.
func uploadFromForm(form *multipart.Form, o *Options) (*upload, error) {
	if len(form.Value)+len(form.File) == 0 {
		return nil, ErrBodyTaken
	}
	pairs, err := pairsOf(form.Value, SourceForm, o)
	if err != nil {
		return nil, err
	}
	u := &upload{pairs: pairs}
	for name, headers := range form.File {
		for _, h := range headers {
			f, err := h.Open()
			if err != nil {
				_ = u.close()
				return nil, fmt.Errorf("params: %w", err)
			}
			u.files = append(u.files, &File{
				Name: name, FileName: baseName(h.Filename), ContentType: h.Header.Get("Content-Type"), Size: h.Size, content: f,
			})
		}
	}
	return u, nil
}

// A File is a file of a multipart form that was received whole. It is kept in memory
// or on disk until the request ends, and is safe for concurrent use until then.
type File struct {
	Name        string // of the parameter
	FileName    string // the client's name for it, without a folder, or ""
	ContentType string // the client's claim, or ""
	Size        int64

	content io.ReaderAt // a bytes.Reader, an os.File, or a multipart.File of the standard library
	name    string      // of the os.File, unless it is removed already
}

// Open returns a new reader of the file, which needs no closing.
func (f *File) Open() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.Size) }

// save copies from a reader to a new file in dir. Where the system allows it, the file's name
// is removed at once: then no other process can open it, and nothing is left if this one is
// killed.
func (f *File) save(from io.Reader, dir string) error {
	disk, err := os.CreateTemp(dir, "upload-*")
	if err != nil {
		return fmt.Errorf("params: %w", err)
	}
	if f.content = disk; os.Remove(disk.Name()) != nil {
		f.name = disk.Name()
	}
	f.Size, err = io.Copy(disk, from)
	return err
}

// close releases the file.
func (f *File) close() (err error) {
	if c, ok := f.content.(io.Closer); ok {
		err = c.Close()
	}
	if f.name != "" {
		err = errors.Join(err, os.Remove(f.name))
	}
	return err
}
