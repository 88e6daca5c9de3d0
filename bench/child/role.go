package child

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// roleVar is how a process knows that it is a child: a role and its task.
const roleVar = "LAZYREQ_BENCH_ROLE"

// Role is what a child does, with a task in JSON. The process ends when it returns.
type Role func(task []byte) error

// Main plays the role of this process, one of these, and ends it, if it is a child. It
// belongs at the very beginning of main.
func Main(roles ...map[string]Role) {
	text := os.Getenv(roleVar)
	if text == "" {
		return
	}
	name, task, _ := strings.Cut(text, " ")
	err := fmt.Errorf("there is no role %q", name)
	for _, known := range roles {
		if play := known[name]; play != nil {
			err = play([]byte(task))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// IsChild reports whether this process is a child, which [Main] should have handled.
func IsChild() bool { return os.Getenv(roleVar) != "" }

// Command returns the command that runs this program in a role, on n processors.
func Command(ctx context.Context, role string, task any, n int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVar+"="+role+" "+string(text), "GOMAXPROCS="+strconv.Itoa(n))
	return cmd, nil
}

// Run runs this program in a role, to its end, and reads the JSON that it prints into
// result.
func Run(ctx context.Context, on CPUs, role string, task, result any) error {
	cmd, err := Command(ctx, role, task, len(on))
	if err != nil {
		return err
	}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := on.startOn(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", role, err, &log)
	}
	return json.Unmarshal(out.Bytes(), result)
}
