package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// reportStale prints the suites whose figures are older than the code that they measure. It
// returns an error if there is one.
func (b bench) reportStale(ctx context.Context, chosen []harness.Suite) error {
	stale := 0
	for _, s := range chosen {
		reason, err := b.findChange(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if reason != "" {
			stale++
			fmt.Fprintf(b.out, "%s: %s\n", s.Name, reason)
		}
	}
	if stale > 0 {
		return fmt.Errorf("%d of %d suites must be measured again", stale, len(chosen))
	}
	return nil
}

// findChange says why a suite must be measured again. It returns "" if its figures are up to
// date.
func (b bench) findChange(ctx context.Context, s harness.Suite) (string, error) {
	rec, err := record.Read(record.Path(b.results, s.Name, false))
	if errors.Is(err, fs.ErrNotExist) {
		return "never measured", nil
	}
	if err != nil {
		return "", err
	}
	dirs, err := codeDirs(ctx, s)
	if err != nil {
		return "", err
	}
	return changeSince(ctx, ".", rec.Commit, dirs)
}

const library = "github.com/lazyreq/lazyreq"

// codeDirs returns the directories of the code that a suite measures: its own package, and the
// packages of the library that it imports or builds.
func codeDirs(ctx context.Context, s harness.Suite) ([]string, error) {
	own := "bench/" + cmp.Or(s.Package, s.Name)
	var dirs []string
	for _, folder := range []string{own, s.Program} {
		if folder == "" {
			continue
		}
		const template = `{{if .Module}}{{.Module.Path}} {{.ImportPath}} {{.Dir}}{{end}}`
		out, err := run(ctx, "../"+folder, "go", "list", "-deps", "-f", template)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			module, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			pkg, dir, _ := strings.Cut(rest, " ")
			if module == library || pkg == library+"/"+own {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

// changeSince describes what has changed in directories since a commit, as [record.Record]
// writes it, in the repository that contains dir. It returns "" if nothing has. Only Go files
// and scripts count, and no tests.
func changeSince(ctx context.Context, dir, commit string, dirs []string) (string, error) {
	if _, err := run(ctx, dir, "git", "rev-parse", "HEAD"); err != nil {
		return "", err
	}
	hash, changed := strings.CutSuffix(commit, "+")
	if _, err := run(ctx, dir, "git", "merge-base", "--is-ancestor", "--end-of-options", hash, "HEAD"); err != nil {
		return fmt.Sprintf("its commit %q is not in the history", hash), nil
	}
	args := []string{"diff", "--name-only", hash, "HEAD", "--", ":(exclude,glob)**/*_test.go"}
	for _, d := range dirs {
		args = append(args, ":(glob)"+d+"/*.go", ":(glob)"+d+"/*.lua")
	}
	out, err := run(ctx, dir, "git", args...)
	files := strings.Fields(out)
	switch {
	case err != nil:
		return "", err
	case len(files) > 0:
		return fmt.Sprintf("code has changed since %s in %s", commit, strings.Join(folders(files), ", ")), nil
	case changed:
		return "measured with uncommitted changes to " + hash, nil
	}
	return "", nil
}

// folders returns the folders of files, each once.
func folders(files []string) []string {
	var list []string
	for _, f := range files {
		list = append(list, path.Dir(f))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// run returns the output of a command that runs in a directory.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w", name, args[0], dir, err)
	}
	return string(out), nil
}
