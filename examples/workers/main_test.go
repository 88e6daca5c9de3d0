package main

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	if _, child := childOptions(); child {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

var step = regexp.MustCompile(`: (user \d): step (\d+), under number (\d+)`)

// TestItTellsWhatHappens checks the program's output. The steps of each user have no gaps, and each new worker of a
// user has a larger fencing number.
func TestItTellsWhatHappens(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+testhost.StartRedis(t).Addr)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-processes", "3", "-users", "3", "-for", "3s", "-kill", "700ms"}, &out))
	story := out.String()
	require.Regexp(t, `worker \d+ is killed`, story)
	require.Contains(t, story, "the end\n")
	require.NotContains(t, story, "refused")
	last, largest := map[string]int{}, map[string]int64{}
	for line := range strings.Lines(story) {
		m := step.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		number, err := strconv.ParseInt(m[3], 10, 64)
		require.NoError(t, err)
		require.LessOrEqual(t, n-last[m[1]], 2, "one step at most that its worker did not live to tell\n%s", story)
		require.Greater(t, n, last[m[1]], "%s", story)
		require.GreaterOrEqual(t, number, largest[m[1]], "%s", story)
		last[m[1]], largest[m[1]] = n, number
	}
	require.Len(t, last, 3, "%s", story)
}

func TestBadSettings(t *testing.T) {
	require.NoError(t, run(t.Context(), []string{"-help"}, io.Discard))
	require.ErrorContains(t, run(t.Context(), []string{"-users", "0"}, io.Discard), "positive")
}
