package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("REDIS_URL") // tests that need Redis set it themselves
	goleak.VerifyTestMain(m)
}

// start runs the program on a free port until the test ends, and returns its address.
func start(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0"}, w) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	said := make([]byte, 1000)
	n, err := r.Read(said)
	require.NoError(t, err)
	found := regexp.MustCompile(`Listening on (\S+)`).FindSubmatch(said[:n])
	require.NotNil(t, found)
	return string(found[1])
}

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func answer(t *testing.T, res *http.Response, err error) (status int, body string) {
	t.Helper()
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

func ask(t *testing.T, at string) (status int, token string) {
	t.Helper()
	res, err := client.PostForm(at+"/tokens", url.Values{"size": {"small"}})
	status, body := answer(t, res, err)
	return status, strings.TrimSpace(body)
}

func use(t *testing.T, at, token string) (status int, body string) {
	t.Helper()
	res, err := client.Get(at + "/spawn_vm?token=" + url.QueryEscape(token))
	return answer(t, res, err)
}

// oneMachine sends fifty requests with the same token to several servers, and checks that one machine is started.
func oneMachine(t *testing.T, at ...string) {
	status, token := ask(t, at[0])
	require.Equal(t, http.StatusOK, status)
	status, _ = ask(t, at[0])
	require.Equal(t, http.StatusTooManyRequests, status, "one token each second")
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for i := range 50 {
		wg.Go(func() {
			res, err := client.Get(at[i%len(at)] + "/spawn_vm?token=" + token)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			counts[res.StatusCode]++
			if body, _ := io.ReadAll(res.Body); res.StatusCode == http.StatusOK && string(body) != "a small machine is starting\n" {
				t.Errorf("%s", body)
			}
		})
	}
	wg.Wait()
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 49}, counts)
	status, body := use(t, at[0], "0an3dks7000xcj201ls")
	require.Equal(t, http.StatusNotFound, status)
	require.NotContains(t, body, "0an3dks7000xcj201ls")
	status, _ = use(t, at[0], "")
	require.Equal(t, http.StatusBadRequest, status)
	require.Eventually(t, func() bool { status, _ := ask(t, at[0]); return status == http.StatusOK }, 5*time.Second, 100*time.Millisecond)
}

func TestOneMachine(t *testing.T) { oneMachine(t, start(t)) }

func TestOneMachineOfTwoServers(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+testhost.StartRedis(t).Addr)
	oneMachine(t, start(t), start(t))
}

func TestBadSettings(t *testing.T) {
	require.NoError(t, run(t.Context(), []string{"-help"}, io.Discard))
	require.Error(t, run(t.Context(), []string{"-addr", "nowhere"}, io.Discard))
	t.Setenv("REDIS_URL", "gopher://")
	require.ErrorContains(t, run(t.Context(), nil, io.Discard), "REDIS_URL")
}
