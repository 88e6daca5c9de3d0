package counter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// nodeDir has redback.js and the package-lock.json of what it needs, seen from the
// directory that the benchmarks are run in.
const nodeDir = "node"

// redback is a Node process with redback 0.5.1.
type redback struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
}

func newRedback(ctx context.Context, addr string) (*redback, error) {
	if err := installed(ctx); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "redback.js", port)
	cmd.Dir = nodeDir
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
	return &redback{cmd, stdin, bufio.NewReader(stdout)}, nil
}

// installed fetches the packages of package-lock.json, unless they are there.
func installed(ctx context.Context) error {
	if err := errors.Join(missing("node"), missing("npm")); err != nil {
		return err
	}
	if _, err := os.Stat(nodeDir + "/node_modules/redback/package.json"); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = nodeDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci: %w: %s", harness.ErrMissing, err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

// answer is a line from redback.js.
type answer struct {
	Ops     int
	Seconds float64
	Wrong   string
	Error   string
}

// ask sends a command of redback.js and waits for its answer.
func (b *redback) ask(command map[string]any) (answer, error) {
	if err := json.NewEncoder(b.stdin).Encode(command); err != nil {
		return answer{}, err
	}
	line, err := b.answers.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("redback.js ended: %w", err)
	}
	var a answer
	switch err := json.Unmarshal(line, &a); {
	case err != nil:
		return a, err
	case a.Error != "":
		return a, errors.New(a.Error)
	case a.Wrong != "":
		return a, fmt.Errorf("%w: %s", harness.ErrWrong, a.Wrong)
	}
	return a, nil
}

func (b *redback) prepare(_ context.Context, round string, charge bool) error {
	_, err := b.ask(map[string]any{"do": "prepare", "round": round, "subjects": subjects, "charge": charge})
	return err
}

func (b *redback) run(_ context.Context, l load, length time.Duration) (sample, error) {
	a, err := b.ask(map[string]any{
		"do": "run", "op": l.op, "interval": l.interval.Seconds(),
		"callers": inFlight, "ms": length.Milliseconds(),
	})
	return sample{a.Ops, a.Seconds}, err
}

func (b *redback) verify(context.Context) error {
	_, err := b.ask(map[string]any{"do": "verify"})
	return err
}

func (b *redback) cpu() (time.Duration, error) {
	a, err := b.ask(map[string]any{"do": "cpu"})
	return time.Duration(a.Seconds * float64(time.Second)), err
}

// Close ends the process, which leaves when its input does.
func (b *redback) Close() error {
	return errors.Join(b.stdin.Close(), b.cmd.Wait())
}
