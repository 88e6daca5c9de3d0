package params

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// fileBuffer is the size up to which a file is held in memory.
const fileBuffer = 64 << 10

// formData is a form that was received completely. It is the value of the property "params.upload" for a multipart form.
type formData struct {
	pairs  []pair
	files  []*File
	memory int64 // bytes of a multipart form that are held in memory
}

// File returns the file that a multipart form has under name. A body of another type is a 415. The whole form is
// read: files of up to 64 KiB stay in memory while Options.MaxBody has room for them, and larger files go to disk.
// All of them are removed when the request ends. [Params.Parts] is for files that are stored elsewhere.
func (p *Params) File(name string) (*File, error) {
	files, err := p.Files(name)
	switch {
	case err != nil:
		return nil, err
	case len(files) == 0:
		return nil, newError(ErrMissing, SourceForm, name, "is missing")
	case len(files) > 1:
		return nil, malformedError(SourceForm, name, givenTimesDetail(len(files)))
	}
	return files[0], nil
}

// Files returns all files that a multipart form has under name.
func (p *Params) Files(name string) ([]*File, error) {
	u, err := p.upload()
	if err != nil {
		return nil, err
	}
	return findFiles(u.files, name).files, nil
}

// form returns the form in the body if it is of a wanted kind.
func (p *Params) form(want kinds) (*formData, error) {
	_, c, err := p.describe()
	if err == nil && c.kind&want == multipartKind {
		return p.upload()
	}
	b, err := p.body(want)
	if err != nil {
		return nil, err
	}
	return &b.form, b.formErr
}

// upload returns the multipart form after it was received completely.
func (p *Params) upload() (*formData, error) {
	_, c, err := p.describe()
	if err != nil || c.none {
		return &formData{}, err
	}
	if err := c.checkKind(multipartKind); err != nil {
		return nil, err
	}
	return uploadKey.Get(p.ctx)
}

func resolveUpload(ctx context.Context) (*formData, error) {
	p, _ := From(ctx)
	u := &formData{}
	for part, err := range p.Parts() {
		if err == nil {
			err = u.addPart(part)
		}
		if err != nil {
			return nil, err
		}
	}
	return u, nil
}

// addPart receives a part.
func (u *formData) addPart(part *Part) error {
	o := part.from.options
	switch {
	case part.IsFile:
		return u.addFile(part, o)
	case len(u.pairs) == o.MaxParams:
		return tooManyError(SourceForm, o.MaxParams)
	}
	text, err := part.Text()
	u.pairs = append(u.pairs, pair{part.Name, text})
	u.memory += int64(len(text))
	return err
}

// addFile receives a file. It stays in memory if it is small and there is room. A browser sends a file without a
// name and content if none was chosen.
func (u *formData) addFile(part *Part, o *Options) error {
	buffer := max(1, min(fileBuffer, o.MaxBody-u.memory))
	data, err := io.ReadAll(io.LimitReader(part, buffer))
	size := int64(len(data))
	if err != nil || size == 0 && part.FileName == "" {
		return err
	}
	f := &File{Name: part.Name, FileName: part.FileName, ContentType: part.ContentType, Size: size}
	if size == buffer {
		f, err = part.save(data)
	} else {
		f.content = bytes.NewReader(bytes.Clone(data)) // without the unused capacity
		u.memory += size
	}
	u.files = append(u.files, f)
	return err
}

// Save writes the rest of the part to a file in Options.TempDir, which is removed when the request ends.
func (p *Part) Save() (*File, error) { return p.save(nil) }

// save writes data and the rest of the part to a file. If possible, it removes the file's name at once, so that no other
// process can open the file and nothing is left if this process is killed.
func (p *Part) save(data []byte) (*File, error) {
	disk, err := os.CreateTemp(p.from.options.TempDir, "upload-*")
	if err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	end := disk.Close
	if os.Remove(disk.Name()) != nil { // the system can't remove an open file
		end = func() error { return errors.Join(disk.Close(), os.Remove(disk.Name())) }
	}
	p.from.ctx.OnClose(end)
	f := &File{Name: p.Name, FileName: p.FileName, ContentType: p.ContentType, content: disk}
	f.Size, err = io.Copy(disk, io.MultiReader(bytes.NewReader(data), p))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// A File is a file of a multipart form that was received completely. It is kept in memory or on disk until the
// request ends, and is safe for concurrent use until then.
type File struct {
	Name        string // of the parameter
	FileName    string // the client's name for the file, without a folder, or ""
	ContentType string // the client's claim, or ""
	Size        int64

	content io.ReaderAt // a bytes.Reader or an os.File
}

// Open returns a new reader of the file, which needs no closing.
func (f *File) Open() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.Size) }
