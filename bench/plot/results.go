package plot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// All draws the records in one directory into another.
func All(results, plots string) error {
	paths, err := filepath.Glob(record.Path(results, "*", false))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no results in %s", results)
	}
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for _, p := range paths {
		r, err := record.Read(p)
		if err != nil {
			return err
		}
		for _, metric := range distinct(r.Results, func(r harness.Result) string { return r.Metric }) {
			pic := newPicture(r, metric)
			if pic == nil {
				continue
			}
			if err := pic.save(plots); err != nil {
				return err
			}
		}
		if r.Suite == "server" {
			if err := saveShares(r.Results, plots); err != nil {
				return err
			}
		}
	}
	return nil
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
