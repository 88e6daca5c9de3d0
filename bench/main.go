// Command bench compares lazyreq with other libraries, each suite in a full and in a short
// form, and prints tables:
//
//	go run . -all                  run both forms of every suite, write them to results/, and draw them
//	go run . -suite NAME           run both forms of a suite and write them to results/
//	go run . [-suite NAME] -quick  run the short form, fail if we have become worse
//	go run . [-suite NAME] -stale  list the suites whose code is newer than their figures
//	go run . -plot                 draw results/ as SVG
//	go run . -algorithms           compute how exact the rules of package ratelimit are
//	go run . -faults               look for known faults of the programs
//
// Run it in its own directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/lazyreq/lazyreq/bench/algorithms"
	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/counter"
	"github.com/lazyreq/lazyreq/bench/decisions"
	"github.com/lazyreq/lazyreq/bench/denycache"
	"github.com/lazyreq/lazyreq/bench/faults"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/memory"
	"github.com/lazyreq/lazyreq/bench/params"
	"github.com/lazyreq/lazyreq/bench/plot"
	"github.com/lazyreq/lazyreq/bench/prefetch"
	"github.com/lazyreq/lazyreq/bench/property"
	"github.com/lazyreq/lazyreq/bench/proxy"
	"github.com/lazyreq/lazyreq/bench/record"
	"github.com/lazyreq/lazyreq/bench/server"
	"github.com/lazyreq/lazyreq/bench/session"
)

var suites = []harness.Suite{
	property.Suite(),
	counter.Suite(),
	server.Suite(),
	session.Suite(),
	prefetch.Suite(),
	memory.Suite(),
	decisions.Suite(),
	denycache.Suite(),
	params.Suite(),
	proxy.Suite(),
}

// options are the command line.
type options struct {
	suite                                        string
	all, quick, stale, plots, algorithms, faults bool
}

func main() {
	child.Main(server.Roles, proxy.Roles) // which does not return in the processes that a suite starts
	var o options
	flag.StringVar(&o.suite, "suite", "", "only this suite: "+names())
	flag.BoolVar(&o.all, "all", false, "run both forms of every suite and draw the results")
	flag.BoolVar(&o.quick, "quick", false, "run the short form, fail if we have become worse")
	flag.BoolVar(&o.stale, "stale", false, "list the suites whose code has changed since their figures were taken")
	flag.BoolVar(&o.plots, "plot", false, "draw the results in ../docs/plots")
	flag.BoolVar(&o.algorithms, "algorithms", false, "compute the tables and pictures of ../docs/algorithms.md")
	flag.BoolVar(&o.faults, "faults", false, "look for known faults and print the table of ../docs/benchmarks.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	err := o.run(ctx, bench{results: "results", out: os.Stdout, progress: os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, b bench) error {
	chosen, err := find(o.suite)
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case err != nil:
		return err
	case o.conflict():
		return errors.New("these flags cannot be combined: want one, or -suite with -quick or -stale")
	case o.algorithms:
		return algorithms.Run(b.out, "../docs/algorithms")
	case o.faults:
		return faults.Run(ctx, b.out, b.progress)
	case o.plots:
		return plot.All(b.results, "../docs/plots")
	case o.stale:
		return b.reportStale(ctx, chosen)
	case o.suite == "" && !o.all && !o.quick:
		return errors.New("want -all or -suite NAME")
	}
	runSuite := b.runBothForms
	if o.quick {
		runSuite = b.guard
	}
	var errs []error
	for _, s := range chosen {
		if err := runSuite(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if o.all && len(errs) == 0 {
		return plot.All(b.results, "../docs/plots")
	}
	return errors.Join(errs...)
}

// conflict reports whether more than one thing is asked for.
func (o options) conflict() bool {
	n := 0
	for _, set := range []bool{o.all, o.plots, o.algorithms, o.faults, o.quick || o.stale || o.suite != "", o.quick && o.stale} {
		if set {
			n++
		}
	}
	return n > 1
}

// find returns the suite with a name, or all if the name is empty.
func find(name string) ([]harness.Suite, error) {
	if name == "" {
		return suites, nil
	}
	i := slices.IndexFunc(suites, func(s harness.Suite) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("-suite %s: unknown suite, want one of %s", name, names())
	}
	return suites[i : i+1], nil
}

func names() string {
	var list []string
	for _, s := range suites {
		list = append(list, s.Name)
	}
	return strings.Join(list, ", ")
}

// bench runs suites.
type bench struct {
	results  string // folder of the records
	out      io.Writer
	progress io.Writer // gets a line at the beginning of each case
}

// runBothForms runs the full form of a suite, then the short one. It writes their records if
// both have succeeded.
func (b bench) runBothForms(ctx context.Context, s harness.Suite) error {
	if err := b.checkFolder(); err != nil {
		return err
	}
	full, err := b.measure(ctx, s, false)
	if err != nil {
		return err
	}
	short, err := b.measure(ctx, s, true)
	if err != nil {
		return err
	}
	return errors.Join(full.Write(record.Path(b.results, s.Name, false)), short.Write(record.Path(b.results, s.Name, true)))
}

// checkFolder returns an error if no record can be written. It is called before a run, which takes minutes.
func (b bench) checkFolder() error {
	if err := os.MkdirAll(b.results, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(b.results, ".check-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// measure runs one form of a suite and prints its results.
func (b bench) measure(ctx context.Context, s harness.Suite, quick bool) (record.Record, error) {
	form := "full form"
	if quick {
		form = "short form"
	}
	rec, others := record.New(s), record.Watch()
	r := &harness.Run{Quick: quick, Begin: func(name string) {
		others() // the end of the case before
		fmt.Fprintf(b.progress, "%s, %s: %s\n", s.Name, form, name)
	}}
	err := s.Run(ctx, r)
	rec.Results, rec.Others = r.Results(), others()
	return rec, errors.Join(err, writeTable(b.out, rec))
}
