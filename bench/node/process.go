// Package node runs peers of the benchmarks that are written for Node. The scripts are
// beside it, with the package-lock.json of what they need.
package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// dir is where the scripts are, seen from the directory that the benchmarks are run in.
const dir = "node"

// Process is a script that reads a JSON command per line, and answers each with a line.
// It is asked by one goroutine at a time.
type Process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
	// patience is the longest time to wait for an answer or for the end. Then the process is killed.
	patience time.Duration
}

// Start starts a script that needs a package, which is fetched with all others if it is
// not there. It is [harness.ErrMissing] if that cannot be. ctx ends the process.
func Start(ctx context.Context, pkg, script string, args ...string) (*Process, error) {
	if err := install(ctx, pkg); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Dir = dir
	return startProcess(cmd)
}

// startProcess starts what reads commands and answers them.
func startProcess(cmd *exec.Cmd) (*Process, error) {
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd, stdin, bufio.NewReader(stdout), 30 * time.Second}, nil
}

func install(ctx context.Context, pkg string) error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: no %s on this machine", harness.ErrMissing, program)
		}
	}
	if _, err := os.Stat(dir + "/node_modules/" + pkg + "/package.json"); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci: %w: %s", harness.ErrMissing, err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

// Ask sends a command and reads its answer. One with "wrong" is [harness.ErrWrong], one
// with "error" any other error. If there is no answer for 30 s, Ask kills the process.
func (p *Process) Ask(command map[string]any, answer any) error {
	defer p.killLater().Stop()
	if err := json.NewEncoder(p.stdin).Encode(command); err != nil {
		return err
	}
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s has ended or was killed because it did not answer: %w", strings.Join(p.cmd.Args, " "), err)
	}
	var failed struct{ Wrong, Error string }
	if err := json.Unmarshal(line, &failed); err != nil {
		return err
	}
	switch {
	case failed.Error != "":
		return errors.New(failed.Error)
	case failed.Wrong != "":
		return fmt.Errorf("%w: %s", harness.ErrWrong, failed.Wrong)
	}
	return json.Unmarshal(line, answer)
}

func (p *Process) killLater() *time.Timer {
	return time.AfterFunc(p.patience, func() { _ = p.cmd.Process.Kill() })
}

// Close ends the process, which leaves when its input does.
func (p *Process) Close() error {
	defer p.killLater().Stop()
	return errors.Join(p.stdin.Close(), p.cmd.Wait())
}
