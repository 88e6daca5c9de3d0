package sqltest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/session/sqlstore"
)

// postgres is a PostgreSQL server for one test. It listens only on a Unix socket in its folder.
type postgres struct {
	t    *testing.T
	dir  string
	bin  string
	data string
}

// startPostgreSQL starts a server. If PostgreSQL is not installed, the test is skipped, or fails with CI=true.
func startPostgreSQL(t *testing.T) *postgres {
	t.Helper()
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian does not have it in the PATH
	initdb := testenv.LookPath(t, append([]string{"initdb"}, debian...)...)
	dir, err := os.MkdirTemp("", "pg") // a socket's path must be short
	require.NoError(t, err)
	p := &postgres{t: t, dir: dir, bin: filepath.Dir(initdb), data: filepath.Join(dir, "data")}
	t.Cleanup(func() {
		p.run("pg_ctl", "-D", p.data, "-m", "immediate", "-w", "stop")
		_ = os.RemoveAll(dir)
	})
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		require.NoError(t, exec.Command("chown", unprivileged(t), dir).Run())
	}
	p.must("initdb", "-D", p.data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync")
	p.start()
	return p
}

// unprivileged returns the name of a user that may run the server.
func unprivileged(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	t.Fatal("there is no user postgres or nobody to run the server")
	return ""
}

// run runs a program of PostgreSQL and returns its output.
func (p *postgres) run(program string, args ...string) (string, error) {
	args = append([]string{filepath.Join(p.bin, program)}, args...)
	if os.Geteuid() == 0 {
		args = append([]string{"setpriv", "--reuid", unprivileged(p.t), "--regid", "nogroup", "--clear-groups"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *postgres) must(program string, args ...string) {
	p.t.Helper()
	out, err := p.run(program, args...)
	require.NoError(p.t, err, out)
}

// start starts the server and waits until it answers.
func (p *postgres) start() {
	p.t.Helper()
	options := fmt.Sprintf("-c listen_addresses='' -c unix_socket_directories=%s -c fsync=off", p.dir)
	p.must("pg_ctl", "-D", p.data, "-l", filepath.Join(p.dir, "log"), "-o", options, "-w", "-t", "60", "start")
}

// kill ends the server at once, as after a crash.
func (p *postgres) kill() { p.must("pg_ctl", "-D", p.data, "-m", "immediate", "-w", "stop") }

func (p *postgres) dsn() string { return "host=" + p.dir + " user=test dbname=postgres" }

func openPostgreSQL(t *testing.T) database {
	t.Helper()
	return create(t, "pgx", startPostgreSQL(t).dsn(), sqlstore.PostgreSQL)
}
