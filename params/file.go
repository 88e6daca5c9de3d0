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
	FileName    string // as the client calls it, without a folder; "" if it doesn't say
	ContentType string // as the client says, unchecked; "" if it doesn't
	Size        int64

	content io.ReaderAt // a bytes.Reader, an os.File, or a multipart.File of the standard library
	name    string      // of the os.File, if it is still to be removed
}

// Open returns a new reader of the file, which needs no closing.
func (f *File) Open() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.Size) }

// save moves what comes from a reader to a new file in dir that no other process can open.
// Where the system can, it is removed at once: then even a process that is killed leaves
// nothing behind.
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

// close gives up what the file holds.
func (f *File) close() (err error) {
	if c, ok := f.content.(io.Closer); ok {
		err = c.Close()
	}
	if f.name != "" {
		err = errors.Join(err, os.Remove(f.name))
	}
	return err
}
