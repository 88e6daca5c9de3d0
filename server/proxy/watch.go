package proxy

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settled is how long a file has to be left alone after a change: editors write in several
// steps.
const settled = 100 * time.Millisecond

// Watch calls changed when the file was written, replaced or put back, until ctx ends. It
// watches the folder: a file that is replaced is another one.
func Watch(ctx context.Context, file string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	quiet := time.NewTimer(settled)
	quiet.Stop()
	defer quiet.Stop()
	// What is mounted into a container changes by a link further up: every change in the
	// folder is a reason to look.
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.Events:
			if !ok {
				return nil
			}
			quiet.Reset(settled)
		case err, ok := <-w.Errors:
			if !ok {
				return nil
			}
			return fmt.Errorf("watching %s: %w", file, err)
		case <-quiet.C:
			changed()
		}
	}
}
