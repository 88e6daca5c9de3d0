package params

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
)

// fileBuffer is how much of a file is held in memory before it goes to disk.
const fileBuffer = 64 << 10

// upload is the value of the property "params.upload": a multipart form that was
// received whole. Its files end with the request.
type upload struct {
	pairs []pair
	files []*File
}

// close gives up the files. It is called whatever became of the request.
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

// File returns the file that a multipart form has under name; a body of another type
// is answered 415. The form is read as a whole: files of up to 64 KiB stay in memory,
// as long as all that is held fits into Options.MaxBody, others go to disk, and all of
// them are gone when the request ends. See [Params.Parts] for files that are to go
// elsewhere.
func (p *Params) File(name string) (*File, error) {
	files, err := p.Files(name)
	switch {
	case err != nil:
		return nil, err
	case len(files) == 0:
		return nil, missing(SourceForm, name)
	case len(files) > 1:
		return nil, malformed(SourceForm, name, givenTimes(len(files)))
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
	return u.named(name), nil
}

func (u *upload) named(name string) []*File {
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
	if err := c.check(multipartKind, p.budgets.of(r)); err != nil {
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
	c, o := p.contentOf(r), p.budgets.of(r)
	if f := r.MultipartForm; f != nil && p.way.Load() == unread {
		return uploadOf(f, o)
	}
	source, err := p.formSource(ctx, r, c, o)
	if err != nil {
		return nil, err
	}
	u := &upload{}
	done := false
	defer func() { // what comes of a panic or an error has no other owner
		if !done {
			_ = u.close()
		}
	}()
	if err := u.receive(newPartReader(source, c.boundary, o), o); err != nil {
		return nil, err
	}
	done = true
	return u, nil
}

// formSource is the body, from memory if it is there.
func (p *Params) formSource(ctx context.Context, r *http.Request, c *content, o *Options) (io.Reader, error) {
	if p.way.Load() != held {
		s, err := p.stream(ctx, r, c, o)
		if err == nil || p.way.Load() != held {
			return s, err
		}
	}
	data, err := p.Body()
	return bytes.NewReader(data), err
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
			err = u.file(part, o, &memory)
		case len(u.pairs) == o.MaxParams:
			err = tooMany(SourceForm, o.MaxParams)
		default:
			err = u.text(part, &memory)
		}
		if err != nil {
			return err
		}
	}
}

func (u *upload) text(part *Part, memory *int64) error {
	text, err := part.Text()
	u.pairs = append(u.pairs, pair{part.Name, text})
	*memory -= int64(len(text))
	return err
}

// file receives a file. One without name and content is a field of a page in which
// no file was chosen.
func (u *upload) file(part *Part, o *Options, memory *int64) error {
	f := &File{Name: part.Name, FileName: part.FileName, ContentType: part.ContentType}
	u.files = append(u.files, f)
	buffer := max(1, min(fileBuffer, *memory))
	data, err := io.ReadAll(io.LimitReader(part, buffer))
	f.data, f.Size = data, int64(len(data))
	*memory -= f.Size
	if err != nil {
		return err
	}
	if f.Size == 0 && f.FileName == "" {
		u.files = u.files[:len(u.files)-1]
		return nil
	}
	if f.Size < buffer {
		f.data = bytes.Clone(data) // without the room to grow
		return nil
	}
	*memory += f.Size
	return f.drain(part, o.TempDir)
}

// drain moves the file to disk, and there the rest of part.
func (f *File) drain(part io.Reader, dir string) error {
	if err := f.spill(dir); err != nil {
		return fmt.Errorf("params: %w", err)
	}
	n, err := io.Copy(diskError{f.disk}, part)
	f.Size += n
	return err
}

// diskError marks the errors of writing as the program's.
type diskError struct{ io.Writer }

func (d diskError) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p)
	if err != nil {
		err = fmt.Errorf("params: %w", err)
	}
	return n, err
}

// Save receives the rest of the part as a file on disk, in Options.TempDir, which is
// gone when the request ends.
func (p *Part) Save() (*File, error) {
	f := &File{Name: p.Name, FileName: p.FileName, ContentType: p.ContentType}
	p.from.ctx.OnClose(f.close)
	if err := f.drain(p, p.from.options.TempDir); err != nil {
		return nil, err
	}
	return f, nil
}

// uploadOf is the form that ParseMultipartForm has received, whose files are the
// standard library's to remove. An empty one is what MultipartReader leaves.
func uploadOf(form *multipart.Form, o *Options) (*upload, error) {
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
				Name: name, FileName: baseName(h.Filename), ContentType: h.Header.Get("Content-Type"), Size: h.Size, foreign: f,
			})
		}
	}
	return u, nil
}
