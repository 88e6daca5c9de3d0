package plot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// All draws the results in one directory into another.
func All(results, plots string) error {
	paths, err := filepath.Glob(filepath.Join(results, "*.json"))
	if err != nil {
		return err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, ".meta.json") })
	if len(paths) == 0 {
		return fmt.Errorf("no results in %s", results)
	}
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for _, p := range paths {
		list, err := readResults(p)
		if err != nil {
			return err
		}
		for _, metric := range distinct(list, func(r harness.Result) string { return r.Metric }) {
			pic := newPicture(list, metric)
			if pic == nil {
				continue
			}
			if err := pic.save(plots); err != nil {
				return err
			}
		}
		if err := saveShares(list, plots); err != nil {
			return err
		}
	}
	return nil
}

// readResults reads a file of results, one in each line.
func readResults(path string) ([]harness.Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []harness.Result
	for line := range bytes.Lines(text) {
		var r harness.Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// distinct returns the values of of over the results, each once, in their order.
func distinct(list []harness.Result, of func(harness.Result) string) []string {
	var names []string
	for _, r := range list {
		if n := of(r); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
