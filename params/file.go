package params

import (
	"bytes"
	"io"
	"mime/multipart"
	"os"
)

// A File is a file of a multipart form that was received whole. It is kept in memory
// or on disk until the request ends, and is safe for concurrent use until then.
type File struct {
	Name        string // of the parameter
	FileName    string // as the client calls it, without a folder; "" if it doesn't say
	ContentType string // as the client says, unchecked; "" if it doesn't
	Size        int64

	data    []byte         // unless it is one of the others
	disk    *os.File       // has no name, where a file can be without
	name    string         // that is still to be removed
	foreign multipart.File // of the standard library
}

// Open returns a new reader of the file, which needs no closing.
func (f *File) Open() *io.SectionReader {
	switch {
	case f.disk != nil:
		return io.NewSectionReader(f.disk, 0, f.Size)
	case f.foreign != nil:
		return io.NewSectionReader(f.foreign, 0, f.Size)
	}
	return io.NewSectionReader(bytes.NewReader(f.data), 0, f.Size)
}

// onDisk makes a file in dir that nobody else can open. It is removed at once, where
// the system can: then even a process that is killed leaves nothing behind.
func onDisk(dir string) (disk *os.File, name string, err error) {
	disk, err = os.CreateTemp(dir, "upload-*")
	if err != nil {
		return nil, "", err
	}
	if os.Remove(disk.Name()) != nil {
		name = disk.Name() // it is removed when it is closed
	}
	return disk, name, nil
}

// spill moves the file to disk.
func (f *File) spill(dir string) (err error) {
	if f.disk, f.name, err = onDisk(dir); err != nil {
		return err
	}
	_, err = f.disk.Write(f.data)
	f.data = nil
	return err
}

// close gives up what the file holds.
func (f *File) close() error {
	f.data = nil
	if f.foreign != nil {
		return f.foreign.Close()
	}
	if f.disk == nil {
		return nil
	}
	err := f.disk.Close()
	if f.name != "" {
		if removeErr := os.Remove(f.name); err == nil {
			err = removeErr
		}
	}
	return err
}
