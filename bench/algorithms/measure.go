package algorithms

import (
	"io"

	"golang.org/x/sync/errgroup"
)

// report is all that is measured, in the order of the subjects.
type report struct {
	over   []over
	strict []strict
}

// measure takes some seconds. It gives the same figures each time.
func measure() (report, error) {
	list := allSubjects()
	r := report{over: make([]over, len(list)), strict: make([]strict, len(list))}
	all, err := allCrowds()
	if err != nil {
		return report{}, err
	}
	var group errgroup.Group
	for i, s := range list {
		group.Go(func() (err error) {
			r.over[i], err = measureOver(s)
			return err
		})
		group.Go(func() (err error) {
			r.strict[i], err = measureStrict(s, all)
			return err
		})
	}
	return r, group.Wait()
}

// Run measures all rules, prints the tables of docs/algorithms.md to w, and draws its
// pictures into dir.
func Run(w io.Writer, dir string) error {
	r, err := measure()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, r.tables()); err != nil {
		return err
	}
	return r.save(dir)
}
