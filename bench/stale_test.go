package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// repository is a new Git repository.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	r := repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r repository) git(args ...string) string {
	out, err := run(r.t.Context(), r.dir, "git", append([]string{"-c", "user.name=n", "-c", "user.email=e"}, args...)...)
	require.NoError(r.t, err)
	return strings.TrimSpace(out)
}

// commit commits a file and returns the commit.
func (r repository) commit(file, text string) string {
	path := filepath.Join(r.dir, file)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o600))
	r.git("add", ".")
	r.git("commit", "-q", "-m", "change "+file)
	return r.git("rev-parse", "--short=12", "HEAD")
}

func (r repository) changeSince(commit string) string {
	reason, err := changeSince(r.t.Context(), r.dir, commit, []string{filepath.Join(r.dir, "a"), filepath.Join(r.dir, "b")})
	require.NoError(r.t, err)
	return reason
}

func TestChangesThatCount(t *testing.T) {
	r := newRepository(t)
	r.commit("a/lib.go", "one")
	measured := r.commit("b/script.lua", "one")
	require.Empty(t, r.changeSince(measured))

	r.commit("a/lib_test.go", "test")
	r.commit("a/README.md", "text")
	r.commit("a/below/lib.go", "another package")
	r.commit("c/lib.go", "not measured")
	require.Empty(t, r.changeSince(measured))

	r.commit("b/script.lua", "two")
	require.Equal(t, "code has changed since "+measured+" in b", r.changeSince(measured))
	r.git("rm", "-q", "a/lib.go")
	r.commit("a/other.go", "three")
	require.Equal(t, "code has changed since "+measured+" in a, b", r.changeSince(measured))
}

func TestCommitsThatSayTooLittle(t *testing.T) {
	r := newRepository(t)
	first := r.commit("a/lib.go", "one")
	require.Equal(t, "measured with uncommitted changes to "+first, r.changeSince(first+"+"))
	require.Equal(t, `its commit "123456789abc" is not in the history`, r.changeSince("123456789abc"))
	require.Equal(t, `its commit "" is not in the history`, r.changeSince(""))

	r.git("checkout", "-q", "-b", "side")
	aside := r.commit("a/lib.go", "two")
	r.git("checkout", "-q", "main")
	require.Equal(t, `its commit "`+aside+`" is not in the history`, r.changeSince(aside))
	r.commit("b/lib.go", "three")
	require.Equal(t, "code has changed since "+first+"+ in b", r.changeSince(first+"+"))

	_, err := changeSince(t.Context(), t.TempDir(), first, nil)
	require.ErrorContains(t, err, "not a git repository")
}

func TestCodeOfASuite(t *testing.T) {
	library, err := filepath.Abs("..")
	require.NoError(t, err)
	for name, want := range map[string]struct{ has, hasNot []string }{
		"property": {[]string{"reqctx", "lazy", "bench/property"}, []string{"server", "ratelimit", "bench/harness"}},
		"redis":    {[]string{"ratelimit/redisstore", "ratelimit/layer", "bench/decisions"}, []string{"server", "session"}},
		"proxy":    {[]string{"cmd/ratelimit-proxy", "cmd/ratelimit-proxy/internal/proxy", "bench/proxy"}, []string{"bench/counter"}},
	} {
		chosen, err := find(name)
		require.NoError(t, err)
		dirs, err := codeDirs(t.Context(), chosen[0])
		require.NoError(t, err)
		for _, d := range want.has {
			require.Contains(t, dirs, filepath.Join(library, d), name)
		}
		for _, d := range want.hasNot {
			require.NotContains(t, dirs, filepath.Join(library, d), name)
		}
	}
}

func TestReportOfStaleSuites(t *testing.T) {
	var out bytes.Buffer
	b := bench{results: t.TempDir(), out: &out}
	require.NoError(t, record.Record{Suite: "session", Commit: "nothing"}.Write(record.Path(b.results, "session", false)))
	chosen := []harness.Suite{{Name: "params"}, {Name: "session"}}
	require.EqualError(t, b.reportStale(t.Context(), chosen), "2 of 2 suites must be measured again")
	require.Equal(t, "params: never measured\nsession: its commit \"nothing\" is not in the history\n", out.String())

	require.NoError(t, os.WriteFile(record.Path(b.results, "params", false), []byte("no JSON"), 0o600))
	require.ErrorContains(t, b.reportStale(t.Context(), chosen), "params.jsonl")
	require.ErrorContains(t, b.reportStale(t.Context(), []harness.Suite{{Name: "session", Package: "nowhere"}}), "session: go list in ../bench/nowhere")
}
