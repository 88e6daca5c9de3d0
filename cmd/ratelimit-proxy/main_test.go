package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// binary is the path of the program, which TestMain builds.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ratelimit-proxy")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "ratelimit-proxy")
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is a running instance of the program.
type process struct {
	cmd    *exec.Cmd
	lines  chan string // lines of standard output
	log    *logs
	ended  chan error
	client *http.Client
}

// logs is a writer that keeps the program's standard error.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), lines: make(chan string, 16), log: &logs{}, ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), append([]string{"REDIS_URL="}, env...)...)
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return p
}

// line returns the rest of the next line of standard output, which must begin with prefix.
func (p *process) line(t *testing.T, prefix string) string {
	t.Helper()
	select {
	case line := <-p.lines:
		rest, ok := strings.CutPrefix(line, prefix)
		require.True(t, ok, line)
		return rest
	case <-time.After(30 * time.Second):
		require.Fail(t, "no line on standard output", p.log.String())
		return ""
	}
}

func (p *process) get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := p.client.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

// logged waits for a line of the log that contains a text, and returns it.
func (p *process) logged(t *testing.T, text string) (line map[string]any) {
	t.Helper()
	require.Eventually(t, func() bool {
		for l := range strings.Lines(p.log.String()) {
			if strings.HasSuffix(l, "\n") && strings.Contains(l, text) {
				require.NoError(t, json.Unmarshal([]byte(l), &line), "JSON, as it is no terminal")
				return true
			}
		}
		return false
	}, 30*time.Second, 5*time.Millisecond, "%s: %s", text, p.log)
	return line
}

// stop ends the program with SIGTERM, as a service manager does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		require.NoError(t, err, p.log.String())
	case <-time.After(30 * time.Second):
		require.Fail(t, "it does not stop", p.log.String())
	}
}

func behind(t *testing.T, answer string) string {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	t.Cleanup(up.Close)
	return up.URL
}

func TestFlagsAlone(t *testing.T) {
	p := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", behind(t, "hello"), "--limit", "2/60s", "--admin", "127.0.0.1:0")
	url, admin := p.line(t, "listening on "), p.line(t, "admin on ")
	for _, want := range []int{200, 200, 429} {
		status, _ := p.get(t, url)
		require.Equal(t, want, status)
	}
	status, _ := p.get(t, url+"/status/127.0.0.1")
	require.Equal(t, 404, status, "no flag allows a client to read it")
	status, _ = p.get(t, admin+"/healthz")
	require.Equal(t, 200, status)
	_, body := p.get(t, admin+"/metrics")
	require.Contains(t, body, `ratelimit_proxy_decisions_total{rule="limit",decision="denied"} 1`)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.logged(t, "configuration reloaded")
	p.stop(t)
	require.Equal(t, "stopping", p.logged(t, "stopping")["msg"])
}

func TestRedisFromEnvironment(t *testing.T) {
	redis := testhost.StartRedis(t)
	env := []string{"REDIS_URL=redis://" + redis.Addr}
	up := behind(t, "hello")
	var status []int
	for range 2 {
		p := start(t, env, "--listen", "127.0.0.1:0", "--upstream", up, "--limit", "1/60s")
		got, _ := p.get(t, p.line(t, "listening on "))
		status = append(status, got)
		p.stop(t)
	}
	require.Equal(t, []int{200, 429}, status)

	redis.Kill()
	dead := "redis://:secret@" + redis.Addr
	env = []string{"REDIS_URL=" + dead}
	p := start(t, env, "--listen", "127.0.0.1:0", "--upstream", up, "--limit", "1/60s")
	url := p.line(t, "listening on ")
	line := p.logged(t, "Redis fails")
	require.Equal(t, "ERROR", line["level"])
	require.Contains(t, line["error"], "connection refused", "the cause")
	for range 12 {
		got, _ := p.get(t, url)
		require.Equal(t, 503, got)
	}
	p.stop(t)
	require.NotContains(t, p.log.String(), "secret")
	for line := range strings.Lines(p.log.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(text string) {
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	text := func(answer string) string {
		return fmt.Sprintf("listen: ['127.0.0.1:0']\nupstreams: {main: {url: %q}}\n", behind(t, answer))
	}
	write(text("one"))
	p := start(t, nil, "--config", file, "--admin", "127.0.0.1:0")
	url, admin := p.line(t, "listening on "), p.line(t, "admin on ")
	_, body := p.get(t, url)
	require.Equal(t, "one", body)

	write(text("two"))
	require.Eventually(t, func() bool {
		if _, body = p.get(t, url); body == "one" {
			_ = p.cmd.Process.Signal(syscall.SIGHUP)
		}
		return body == "two"
	}, 30*time.Second, 50*time.Millisecond)

	write(text("three") + "nonsense: 1\n")
	line := p.logged(t, "the old one stays")
	require.Equal(t, "ERROR", line["level"])
	require.Contains(t, line["error"], file+`:3:1: unknown field "nonsense"`)
	_, body = p.get(t, url)
	require.Equal(t, "two", body)

	write(strings.Replace(text("three"), "'127.0.0.1:0'", "{address: '127.0.0.1:0', cert: /none/c, key: /none/k}", 1))
	line = p.logged(t, "listen[0].cert")
	require.Equal(t, "configuration not reloaded: the old one stays in force", line["msg"])
	require.Contains(t, line["error"], file+":1:41: listen[0].cert: /none/c, key /none/k: open /none/c")
	_, body = p.get(t, url)
	require.Equal(t, "two", body)

	write(strings.Replace(text("four"), "[", "[':0', ", 1))
	require.Equal(t, "listen", p.logged(t, "need a restart")["fields"])
	require.Equal(t, "file changed", p.logged(t, "file changed")["cause"])
	_, body = p.get(t, url)
	require.Equal(t, "four", body)

	_, body = p.get(t, admin+"/metrics")
	require.Contains(t, body, `ratelimit_proxy_reloads_total{ok="false"} 2`, "one that couldn't be read, and one without its certificate")

	// The log names each changed field that needs a restart.
	other := strings.Replace(text("five"), "127.0.0.1:0", "127.0.0.1:1", 1)
	write(other + "timeouts: {header: 1s, stall: 2s, idle: 3s}\nmax_header_bytes: 4KiB\n")
	line = p.logged(t, "timeouts.header")
	require.Equal(t, "listen, timeouts.header, timeouts.idle, max_header_bytes", line["fields"], "stall is not among them")
	require.Equal(t, "WARN", line["level"])
	_, body = p.get(t, url)
	require.Equal(t, "five", body, "at the old address")
	p.stop(t)
}

// TestHangingConfigurationFile checks that the program ends on SIGTERM while reading its configuration hangs, as it can on
// a network file system.
func TestHangingConfigurationFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	go func() {
		_ = os.WriteFile(file, []byte("listen: ['127.0.0.1:0']\nupstreams: {main: {url: 'http://127.0.0.1:1'}}\n"), 0o600)
	}()
	p := start(t, nil, "--config", file)
	p.line(t, "listening on ")
	require.Eventually(t, func() bool {
		hanging, err := os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false // the program has not opened the file yet
		}
		t.Cleanup(func() { _ = hanging.Close() })
		return true
	}, 30*time.Second, time.Millisecond)
	p.stop(t)
}

// slow starts an upstream that sends to asked when it has a request, and responds after a receive from answer.
func slow(t *testing.T) (url string, asked, answer chan struct{}) {
	asked, answer = make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(up.Close)
	return up.URL, asked, answer
}

func TestSignals(t *testing.T) {
	for name, c := range map[string]struct {
		grace string
		do    func(p *process, answer chan struct{})
		want  error // error of the request that is in flight
		code  int   // exit status, or -1 if a signal ended the program
		text  string
	}{
		"the request is waited for": {"5m", func(_ *process, answer chan struct{}) { close(answer) }, nil, 0, ""},
		"as long as the grace":      {"10ms", func(*process, chan struct{}) {}, io.EOF, 0, "grace period over"},
		"the second ends it": {"5m", func(p *process, _ chan struct{}) {
			require.Eventually(t, func() bool { return p.cmd.Process.Signal(syscall.SIGTERM) != nil || len(p.ended) > 0 }, 30*time.Second, 10*time.Millisecond)
		}, io.EOF, -1, ""},
	} {
		url, asked, answer := slow(t)
		p := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", url, "--grace", c.grace, "--admin", "127.0.0.1:0")
		at, admin := p.line(t, "listening on "), p.line(t, "admin on ")
		p.logged(t, "there is no rule: nothing is limited")
		got := make(chan error, 1)
		go func() {
			res, err := p.client.Get(at)
			if err == nil {
				err = res.Body.Close()
			}
			got <- err
		}()
		<-asked
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM), name)
		require.Equal(t, c.grace, strings.Replace(p.logged(t, "stopping")["grace"].(string), "5m0s", "5m", 1), "a time one can read")
		if c.want == nil {
			require.Eventually(t, func() bool {
				status, _ := p.get(t, admin+"/healthz")
				return status == 503
			}, 30*time.Second, time.Millisecond, "/healthz reports the stop until then")
		}
		c.do(p, answer)
		if c.want == nil {
			require.NoError(t, <-got, name)
		} else {
			require.Error(t, <-got, name)
		}
		select {
		case <-p.ended:
		case <-time.After(60 * time.Second):
			require.Fail(t, "it goes on", name)
		}
		require.Equal(t, c.code, p.cmd.ProcessState.ExitCode(), "%s: %s", name, p.log)
		require.Contains(t, p.log.String(), c.text, name)
	}
}

func TestDebug(t *testing.T) {
	for _, debug := range []bool{false, true} {
		args := []string{"--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"}
		if debug {
			args = append(args, "--debug")
		}
		p := start(t, nil, args...)
		status, _ := p.get(t, p.line(t, "listening on "))
		require.Equal(t, 502, status)
		p.stop(t)
		require.Equal(t, debug, strings.Contains(p.log.String(), "DEBUG"), p.log.String())
	}
}

func TestInvalidCommandLines(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(good, []byte("upstreams: {main: {url: http://a}}\n"), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("upstreams: {main: {url: http://a}}\nrules:\n  - name: a\n    limit: 1/s\n    key: x\n"), 0o600))
	addresses := filepath.Join(dir, "addresses.yaml")
	require.NoError(t, os.WriteFile(addresses, []byte("listen: ['127.0.0.1']\nupstreams: {main: {url: http://a}}\n"), 0o600))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	taken := busy.Addr().String()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "--upstream or --config is required"},
		{[]string{"--upstream", "x"}, 2, `ratelimit-proxy: --upstream: upstreams.upstream.url: "x" is not the address of a server`},
		{[]string{"--upstream", "http://a", "--listen", "x"}, 2, `ratelimit-proxy: --listen: listen[0].address: "x" is not an address`},
		{[]string{"--upstream", "http://a", "--redis", "x"}, 2, "ratelimit-proxy: --redis: redis: is not the URL of a Redis"},
		{[]string{"--upstream", "http://a", "--limit", "99999999999999999/s"}, 2, "ratelimit-proxy: --limit: rules[0].limit: limit is 99999999999999999, want 1 to 2^53"},
		{[]string{"--upstream", "http://a", "--limit", "x"}, 2, "--limit"},
		{[]string{"--upstream", "http://a", "--limit", "1/day in Nowhere"}, 2, `"Nowhere" is not a time zone, want one such as Europe/Berlin`},
		{[]string{"--upstream", "http://a", "--limit", ""}, 2, "ratelimit-proxy: --limit: is empty: set a value, or omit the flag"},
		{[]string{"--upstream", "http://a", "--listen", ""}, 2, "--listen: is empty"},
		{[]string{"--nonsense"}, 2, "unknown flag"},
		{[]string{"--upstream", "http://a", "--grace=-1s"}, 2, "--grace: is -1s"},
		{[]string{"--config", filepath.Join(dir, "none")}, 2, "no such file"},
		{[]string{"--config", bad}, 2, bad + ":5:10: rules[0].key"},
		{[]string{"check", bad}, 2, bad + ":5:10: rules[0].key"},
		{[]string{"check", filepath.Join(dir, "none")}, 2, "no such file"},
		{[]string{"check", good}, 0, good + " is valid"},
		{[]string{"check", "--limit", "x", good}, 2, "ratelimit-proxy: --limit: check has no such flag"},
		{[]string{"--debug", "check", good}, 2, "--debug: check has no such flag"},
		{[]string{"check", addresses}, 2, addresses + ":1:10: listen[0].address"},
		{[]string{"--listen", "256.0.0.1:x", "--upstream", "http://a"}, 2, "not an address to listen on"},
		{[]string{"--listen", "256.0.0.1:1", "--upstream", "http://a"}, 1, "listen tcp"},
		{[]string{"--listen", "127.0.0.1:0", "--admin", taken, "--upstream", "http://a"}, 1, "admin: listen tcp " + taken},
		{[]string{"--help"}, 0, "check <config>"},
		{[]string{"--help"}, 0, "--upstream=URL"},
		{[]string{"check", "--help"}, 0, "Configuration file (YAML)"},
		{[]string{"--version"}, 0, "ratelimit-proxy "},
	} {
		cmd := exec.Command(binary, c.args...)
		cmd.Env = append(os.Environ(), "REDIS_URL=")
		out, _ := cmd.CombinedOutput()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%q: %s", c.args, out)
		require.Contains(t, string(out), c.want)
		require.NotContains(t, string(out), "listening on", "all addresses or none")
	}
}
