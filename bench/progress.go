package main

import (
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on the terminal that stderr is, or nothing.
type progress struct {
	bar  *progressbar.ProgressBar
	name string
}

func newProgress(name string) *progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return &progress{}
	}
	return &progress{name: name, bar: progressbar.NewOptions(1,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)}
}

// step shows that a round begins, the done-th of those that are planned.
func (p *progress) step(done, planned int, what string) {
	if p.bar == nil {
		return
	}
	p.bar.ChangeMax(planned)
	p.bar.Describe(p.name + " " + what)
	_ = p.bar.Set(done - 1) // a bar that cannot be drawn harms nothing
}

// clear takes the bar away.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
