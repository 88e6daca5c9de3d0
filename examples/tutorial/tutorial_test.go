// Package tutorial tests docs/tutorial.md: its code is that of the steps, and its commands print what
// it shows.
package tutorial

import (
	"encoding/json"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/doccheck"
	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

var update = flag.Bool("update", false, "write what the commands print into docs/tutorial.md")

const page = "../../docs/tutorial.md"

var heading = regexp.MustCompile(`(?m)^## (\d)\. `)

// steps returns the blocks of each section, by the name of the folder that has its program.
func steps(t *testing.T) (folders []string, blocks map[string][]doccheck.Block) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	all, err := doccheck.Blocks(page)
	require.NoError(t, err)
	blocks = map[string][]doccheck.Block{}
	for number, line := range strings.Split(string(text), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			folders = append(folders, "step"+m[1])
		}
		for _, b := range all {
			if b.Line == number+1 && len(folders) > 0 {
				blocks[folders[len(folders)-1]] = append(blocks[folders[len(folders)-1]], b)
			}
		}
	}
	require.Len(t, folders, 8)
	return folders, blocks
}

// lines returns the lines of text that are not blank, without indentation.
func lines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// readFiles returns the Go files of a folder.
func readFiles(t *testing.T, folder string) (files []string) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		files = append(files, string(text))
	}
	return files
}

// TestDocumentedCode checks that the page's code is in the programs, and that the page has all that is new in
// a step. A block is a whole file, or has paragraphs of one; new imports may be anywhere in it.
func TestDocumentedCode(t *testing.T) {
	folders, blocks := steps(t)
	before := map[string]bool{}
	for _, folder := range folders {
		files := readFiles(t, folder)
		shown := map[string]bool{}
		for _, b := range blocks[folder] {
			if b.Lang != "go" {
				continue
			}
			for _, line := range lines(b.Text) {
				shown[line] = true
			}
			require.True(t, isPartOfAny(files, b.Text), "%s:%d: not in %s", b.Page, b.Line, folder)
		}
		for _, line := range lines(strings.Join(files, "\n")) {
			if !before[line] && !shown[line] {
				t.Errorf("%s has a new line that the page lacks: %s", folder, line)
			}
			before[line] = true
		}
	}
}

func isPartOfAny(files []string, block string) bool {
	for _, file := range files {
		if strings.HasPrefix(block, "package ") && block == file {
			return true
		}
		in := "\n" + strings.Join(lines(file), "\n") + "\n"
		part := !strings.HasPrefix(block, "package ")
		for paragraph := range strings.SplitSeq(block, "\n\n") {
			wanted := lines(paragraph)
			if wanted[0] != "import (" {
				wanted = []string{strings.Join(wanted, "\n")}
			}
			for _, text := range wanted {
				part = part && strings.Contains(in, "\n"+text+"\n")
			}
		}
		if part {
			return true
		}
	}
	return false
}

// masks are what varies from run to run.
var masks = regexp.MustCompile(`Date: .*|session=[\w.-]+|;t=\d+|dur=[\d.]+|Retry-After: \d+|in \d+ seconds|ok\s+\S+\s+\S+|boundary=\S+`)

func mask(text string) string {
	return strings.TrimSpace(masks.ReplaceAllStringFunc(text, func(found string) string {
		return strings.FieldsFunc(found, func(r rune) bool { return strings.ContainsRune("=:\t ", r) })[0] + " (varies)"
	}))
}

// TestDocumentedOutput runs the page's commands and compares what they print. "go run ." restarts the
// program of the step.
func TestDocumentedOutput(t *testing.T) {
	for _, command := range []string{"sh", "curl"} {
		testenv.LookPath(t, command)
	}
	folders, blocks := steps(t)
	addr := freeAddr(t)
	bin := build(t, folders, map[string]string{"127.0.0.1:8080": addr, "127.0.0.1:6379": testhost.StartRedis(t).Addr})
	dir := t.TempDir() // of the commands; the cookie jar stays from step to step
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, folder := range folders {
		stop := start(t, filepath.Join(bin, folder), dir, addr)
		for _, b := range blocks[folder] {
			if b.Lang != "console" {
				continue
			}
			printed := ""
			for c := range strings.SplitSeq(strings.TrimPrefix(b.Text, "$ "), "\n$ ") {
				command, _, _ := strings.Cut(c, "\n")
				printed += "$ " + command + "\n"
				if command == "go run ." {
					stop()
					stop = start(t, filepath.Join(bin, folder), dir, addr)
					continue
				}
				cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "127.0.0.1:8080", addr))
				cmd.Dir = dir
				if strings.HasPrefix(command, "go ") {
					cmd.Dir = folder
				}
				out, err := cmd.Output()
				require.NoError(t, err, command)
				printed += strings.ReplaceAll(strings.ReplaceAll(string(out), "\r", ""), addr, "127.0.0.1:8080")
			}
			if *update {
				text = []byte(strings.Replace(string(text), b.Text, printed, 1))
				continue
			}
			require.Equal(t, mask(printed), mask(b.Text), "%s:%d", b.Page, b.Line)
		}
		stop()
	}
	if *update {
		require.NoError(t, os.WriteFile(page, text, 0o600))
	}
}

// build builds the programs with other addresses, into the folder that it returns.
func build(t *testing.T, folders []string, addresses map[string]string) string {
	dir := t.TempDir()
	replaced := map[string]string{}
	overlayFile := filepath.Join(dir, "overlay.json")
	args := []string{"build", "-ldflags=-s -w", "-overlay", overlayFile, "-o", dir}
	for _, folder := range folders {
		source, err := os.ReadFile(filepath.Join(folder, "main.go"))
		require.NoError(t, err)
		for from, to := range addresses {
			source = []byte(strings.ReplaceAll(string(source), from, to))
		}
		path, err := filepath.Abs(filepath.Join(folder, "main.go"))
		require.NoError(t, err)
		replaced[path] = filepath.Join(dir, folder+".go")
		require.NoError(t, os.WriteFile(replaced[path], source, 0o600))
		args = append(args, "./"+folder)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// start starts a program and waits until it listens.
func start(t *testing.T, program, dir, addr string) (stop func()) {
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
