package params

import (
	"errors"
	"fmt"
	"io"
	"os"
)

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
