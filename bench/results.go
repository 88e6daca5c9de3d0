package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// save writes <suite>.json, a line for each result, and <suite>.meta.json.
func save(dir string, about meta, results []harness.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, about.Suite+".json"))
	if err != nil {
		return err
	}
	if err := errors.Join(writeLines(f, results), f.Close()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, about.Suite+".meta.json"), append(text, '\n'), 0o644)
}

func writeLines(w io.Writer, results []harness.Result) error {
	for _, r := range results {
		if _, err := io.WriteString(w, r.JSON()+"\n"); err != nil {
			return err
		}
	}
	return nil
}
