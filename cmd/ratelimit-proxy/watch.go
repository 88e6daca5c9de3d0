package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is the time between a change and reading the file: editors write in several steps.
const settleTime = 100 * time.Millisecond

// watchFile calls changed whenever the content of a file has changed, until ctx ends. It watches the
// folder: a file may be replaced by another one, and a file that is mounted into a container
// changes by a link. A missing file is not a change.
func watchFile(ctx context.Context, file string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	before, _ := os.ReadFile(file)
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
				look = time.After(settleTime)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return nil
			}
			return fmt.Errorf("watching %s: %w", file, err)
		case <-look:
			look = nil
			if now, err := os.ReadFile(file); err == nil && !bytes.Equal(before, now) {
				before = now
				changed()
			}
		}
	}
}
