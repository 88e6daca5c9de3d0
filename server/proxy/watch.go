package proxy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settled is how long after a change a file is read: editors write in several steps.
const settled = 100 * time.Millisecond

// Watch calls changed when the file has other content than before, until ctx ends. It
// watches the folder: a file that is replaced is another one, and what is mounted into a
// container changes by a link. A file that is missing has not changed.
func Watch(ctx context.Context, file string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	had, _ := os.ReadFile(file)
	var look <-chan time.Time // nil while nothing has happened
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.Events:
			if !ok {
				return nil
			}
			if look == nil {
				look = time.After(settled)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return nil
			}
			return fmt.Errorf("watching %s: %w", file, err)
		case <-look:
			look = nil
			if has, err := os.ReadFile(file); err == nil && !bytes.Equal(had, has) {
				had = has
				changed()
			}
		}
	}
}
