// Command bench compares lazyreq with others and prints a table:
//
//	go run . [-suite NAME] [-quick] [-json]
//	go run . -plot
//	go run . -algorithms
//
// What it finds goes to results/ as well, a line of JSON for each figure, with the
// machine and the command beside it; -plot draws results/ as SVG. -algorithms computes how
// exact the rules of package ratelimit are, for docs/algorithms.md. Run it in its own
// directory.
package main

import (
	"cmp"
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
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/params"
	"github.com/lazyreq/lazyreq/bench/plot"
	"github.com/lazyreq/lazyreq/bench/prefetch"
	"github.com/lazyreq/lazyreq/bench/property"
	"github.com/lazyreq/lazyreq/bench/proxy"
	"github.com/lazyreq/lazyreq/bench/server"
	"github.com/lazyreq/lazyreq/bench/session"
)

var suites = []harness.Suite{
	property.Suite(),
	counter.Suite(),
	server.Suite(),
	session.Suite(),
	prefetch.Suite(),
	decisions.Suite(),
	denycache.Suite(),
	params.Suite(),
	proxy.Suite(),
}

// options are the command line.
type options struct {
	suite   string
	quick   bool
	json    bool
	plot    bool
	exact   bool
	results string
	plots   string
	out     io.Writer
}

func main() {
	child.Main(server.Roles, proxy.Roles) // which does not return in the processes that a suite starts
	o := options{out: os.Stdout}
	flag.StringVar(&o.suite, "suite", "", "run only this suite: "+names())
	flag.BoolVar(&o.quick, "quick", false, "fewer and shorter rounds: a suite ends within 50 s")
	flag.BoolVar(&o.json, "json", false, "print one JSON object per line instead of a table")
	flag.BoolVar(&o.plot, "plot", false, "draw the results, run nothing")
	flag.BoolVar(&o.exact, "algorithms", false, "draw how exact the rules are, run no suite")
	flag.StringVar(&o.results, "results", "results", "`directory` of the results")
	flag.StringVar(&o.plots, "plots", "", "`directory` of the plots; default ../docs/plots, or ../docs/algorithms")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.exact {
		return algorithms.Run(o.out, cmp.Or(o.plots, "../docs/algorithms"))
	}
	if o.plot {
		return plot.All(o.results, cmp.Or(o.plots, "../docs/plots"))
	}
	chosen := suites
	if o.suite != "" {
		i := slices.IndexFunc(suites, func(s harness.Suite) bool { return s.Name == o.suite })
		if i < 0 {
			return fmt.Errorf("-suite %s: there is %s", o.suite, names())
		}
		chosen = suites[i : i+1]
	}
	var errs []error
	for _, s := range chosen {
		if err := o.runSuite(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// runSuite runs a suite and prints what it found. Only a run that went through is
// written to the results.
func (o options) runSuite(ctx context.Context, s harness.Suite) error {
	bar := newProgress(s.Name)
	r := harness.NewRun(s.Name, o.quick, bar.step)
	about := newMeta(s, o.quick)
	err := s.Run(ctx, r)
	bar.clear()
	if printErr := o.print(s, r.Results()); printErr != nil {
		return printErr
	}
	if err != nil {
		return err
	}
	return save(o.results, about, r.Results())
}

func (o options) print(s harness.Suite, results []harness.Result) error {
	if o.json {
		return writeLines(o.out, results)
	}
	return writeTable(o.out, s, results)
}

func names() string {
	var list []string
	for _, s := range suites {
		list = append(list, s.Name)
	}
	return strings.Join(list, ", ")
}
