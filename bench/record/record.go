// Package record keeps the figures of runs, with the commit and the machine that they are
// from.
package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// Record holds the figures of one run. Its file has a line of JSON for the record and one
// for each result.
type Record struct {
	Suite   string    `json:"suite"`
	About   string    `json:"about"`
	Date    time.Time `json:"date"`
	Commit  string    `json:"commit"` // ends in "+" if the code differed from it
	Machine Machine   `json:"machine"`
	// Others is the result of [Watch] for the run, with an interval for each case.
	Others float64 `json:"others"`

	Results []harness.Result `json:"-"`
}

// New returns a record without results of a run that starts now.
func New(s harness.Suite) Record {
	return Record{
		Suite:   s.Name,
		About:   s.About,
		Date:    time.Now().UTC().Truncate(time.Second),
		Commit:  cmp.Or(currentCommit(), "unknown"),
		Machine: thisMachine(),
	}
}

// Path returns the path of a suite's record in the folder of the results. The records of
// short forms are in a folder of their own.
func Path(dir, suite string, quick bool) string {
	if quick {
		dir = filepath.Join(dir, "quick")
	}
	return filepath.Join(dir, suite+".jsonl")
}

// Source describes the origin of the figures in a line. If other programs have disturbed the run, it says so.
func (r Record) Source() string {
	text := fmt.Sprintf("Commit %s of %s, %s, %d CPUs (%s).",
		r.Commit, r.Date.Format(time.DateOnly), r.Machine.Go, r.Machine.CPUs, r.Machine.Processor)
	if r.Others > disturbing {
		text += fmt.Sprintf(" Disturbed: other programs used up to %.0f %% of the processors.", 100*r.Others)
	}
	return text
}

// Write writes the record to a file. It makes the folder if there is none.
func (r Record) Write(path string) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	if err := lines.Encode(r); err != nil {
		return err
	}
	for _, res := range r.Results {
		if err := lines.Encode(res); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// Read reads a record from the file that [Path] names.
func Read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	var r Record
	lines := json.NewDecoder(bytes.NewReader(text))
	if err := lines.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	if r.Suite+".jsonl" != filepath.Base(path) {
		return Record{}, fmt.Errorf("%s: does not begin with the record of its suite, but with %q", path, r.Suite)
	}
	for lines.More() {
		var res harness.Result
		if err := lines.Decode(&res); err != nil {
			return Record{}, fmt.Errorf("%s: %w", path, err)
		}
		r.Results = append(r.Results, res)
	}
	return r, nil
}
