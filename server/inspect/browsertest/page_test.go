// Package browsertest drives the inspector's page in a headless Chromium.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/inspect"
)

// hostile is a text that changes the page if it is treated as markup.
const hostile = `<img src=x onerror="document.title='injected'"></script><script>document.title='injected'</script>`

// pause waits about d. It stands for a call to a store or a service.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

func provide[T any](srv *server.Server, key reqctx.Key[T], took time.Duration, resolve func(ctx context.Context) (T, error)) {
	reqctx.Provide(srv.Registry(), key, reqctx.Prop[T]{Resolve: func(ctx context.Context) (T, error) {
		pause(ctx, took)
		return resolve(ctx)
	}})
}

// shop returns a server that produces an example of everything that the page shows.
func shop(t *testing.T, in *inspect.Inspector, withHostile bool) *server.Server {
	inner, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	store, err := layer.New(inner, layer.Options{Shadow: &layer.ShadowOptions{
		Match: func(op ratelimit.Op) bool { return op.Rule.Per() == time.Hour },
	}})
	require.NoError(t, err)
	search := ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(30), ratelimit.PerHour(20))
	checkout := ratelimit.NewPolicy("checkout", ratelimit.ByIP(), ratelimit.PerMinute(100))
	srv, err := server.New(server.Options{
		Observers: []server.Observer{in}, Callers: true, Logger: slog.New(slog.DiscardHandler), RateLimitStore: store,
		RateLimits: []*ratelimit.Policy{search, checkout},
	})
	require.NoError(t, err)

	user, account := reqctx.NewKey[string]("user"), reqctx.NewKey[string]("account")
	flags, prices := reqctx.NewKey[string]("flags"), reqctx.NewKey[string]("prices")
	payment, evil := reqctx.NewKey[string]("payment"), reqctx.NewKey[string](hostile)
	value := func(v string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return v, nil }
	}
	provide(srv, account, 4*time.Millisecond, value("acme"))
	provide(srv, user, time.Millisecond, account.Get)
	provide(srv, flags, 2*time.Millisecond, value("dark-mode"))
	provide(srv, prices, 6*time.Millisecond, value("12.50"))
	provide(srv, payment, 20*time.Millisecond, func(context.Context) (string, error) { return "", errors.New("payment service: connection refused") })

	read := func(keys ...reqctx.Key[string]) server.HandlerFunc {
		return func(w http.ResponseWriter, req *server.Request) error {
			for _, key := range keys {
				if _, err := key.Get(req.Context()); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintln(w, "done")
			return err
		}
	}
	limited := func(policy *ratelimit.Policy, next server.HandlerFunc) server.HandlerFunc {
		return func(w http.ResponseWriter, req *server.Request) error {
			if err := policy.Require(req.Context()); err != nil {
				return err
			}
			return next(w, req)
		}
	}
	srv.HandleFunc("GET /{$}", read(flags))
	srv.HandleFunc("GET /products/{id}", read(flags, prices))
	srv.HandleFunc("GET /search", limited(search, read(user, prices)))
	srv.HandleFunc("GET /account", read(user, flags))
	srv.HandleFunc("POST /checkout", limited(checkout, read(user, prices, payment)))
	srv.HandleFunc("GET /report", func(w http.ResponseWriter, req *server.Request) error {
		pause(req.Context(), 300*time.Millisecond)
		return read(user)(w, req)
	})
	srv.HandleFunc("GET /healthz", read())
	srv.HandleFunc("GET /cart", read(user, flags), server.Prefetch(user, flags, payment))
	if withHostile {
		provide(srv, evil, 0, func(context.Context) (string, error) { return "", errors.New(hostile) })
		srv.HandleFunc("GET /hostile/{id}/<b>bold<b>", read(evil))
	}
	return srv
}

// traffic sends requests to srv until the test ends.
func traffic(t *testing.T, srv http.Handler) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			method, path := "GET", [...]string{"/", "/products/7", "/search", "/account", "/cart", "/healthz", "/products/9"}[i%7]
			switch i % 41 {
			case 11:
				method, path = "POST", "/checkout"
			case 23:
				path = "/report"
			case 31:
				path = "/hostile/1/%3Cb%3Ebold%3Cb%3E"
			}
			srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
			pause(ctx, 3*time.Millisecond)
		}
	}()
}

// browser returns a context for a new Chromium.
func browser(t *testing.T) context.Context {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(testenv.LookPath(t, "chromium")), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1200, 1000),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// tab is a page in the browser.
type tab struct {
	*testing.T
	ctx context.Context
}

func (p tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	require.NoError(p, chromedp.Do(p.ctx, steps...))
}

func (p tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// holds reports whether a JavaScript expression is true.
func (p tab) holds(expression string) bool {
	p.Helper()
	ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	require.NoError(p, err, expression)
	return ok
}

// eventually waits until a JavaScript expression is true.
func (p tab) eventually(expression string) {
	p.Helper()
	require.Eventually(p, func() bool { return p.holds(expression) }, 30*time.Second, 50*time.Millisecond, expression)
}

// choose selects an option as a user does.
func (p tab) choose(id, value string) {
	p.Helper()
	require.True(p, p.holds(fmt.Sprintf(`(s => { s.value = %[2]q; s.dispatchEvent(new Event("change")); return s.value === %[2]q })(document.getElementById(%[1]q))`, id, value)))
}

// shot stores a screenshot in the folder that the variable SCREENSHOTS names, if it is set.
func (p tab) shot(name string) {
	p.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	require.NoError(p, err)
	require.NoError(p, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

const (
	noOverflow  = `document.documentElement.scrollWidth <= innerWidth`
	notInjected = `document.title === "lazyreq inspector" && document.querySelectorAll("main img, main script").length === 0`
)

// allRows returns a condition that is true if there are rows and the selector matches in each of them.
func allRows(selector string) string {
	return fmt.Sprintf(`(rows => rows.length > 0 && rows.every(r => r.querySelector(%q)))([...document.querySelectorAll("tr.row")])`, selector)
}

// allRoutes returns a condition that is true if there are rows and all of them belong to the route.
func allRoutes(route string) string {
	return fmt.Sprintf(`(rows => rows.length > 0 && rows.every(b => b.textContent === %q))([...document.querySelectorAll("button.open")])`, route)
}

// open opens a new inspector's page, with or without the token, on a server under traffic.
func open(t *testing.T, withToken, withHostile bool) (p tab, in *inspect.Inspector) {
	p = tab{t, browser(t)}
	in, err := inspect.New(inspect.Options{})
	require.NoError(t, err)
	page, err := inspect.Listen(t.Context(), "127.0.0.1:0", in)
	require.NoError(t, err)
	t.Cleanup(func() { _ = page.Close() })
	traffic(t, shop(t, in, withHostile))
	url := page.URL
	if !withToken {
		url, _, _ = strings.Cut(url, "#")
	}
	p.do(chromedp.Navigate(url))
	return p, in
}

func TestPage(t *testing.T) {
	p, _ := open(t, true, false)
	p.eventually(`document.querySelectorAll("tr.row").length > 10 && Number(document.getElementById("rate").textContent) > 5`)
	require.True(t, p.holds(`!location.href.includes("token")`))
	for _, kind := range []string{"denied", "failed", "slow"} {
		p.click(`[data-kind="` + kind + `"]`)
		p.eventually(allRows(".badge." + kind))
	}
	p.click(`[data-kind=""]`)
	p.choose("status", "5")
	p.eventually(allRows(".badge.failed"))
	p.choose("status", "")

	// A request can be opened with the keyboard.
	p.choose("route", "POST /checkout")
	p.eventually(allRoutes("POST /checkout"))
	p.click("#pause")
	p.do(chromedp.Focus(chromedp.CSS("button.open")), chromedp.KeyEvent("\r"))
	p.eventually(`document.querySelectorAll(".details:not([hidden]) .waterfall li").length > 8`)
	require.True(t, p.holds(`document.activeElement.getAttribute("aria-expanded") === "true"`))
	require.True(t, p.holds(`document.querySelector(".waterfall .unused") !== null && document.querySelector(".decisions li") !== null`))
	require.True(t, p.holds(noOverflow))
	p.shot("waterfall-light")
	p.click("#pause")
	p.eventually(`document.getElementById("held").textContent !== ""`) // and so it stays open
	p.click("#pause")

	p.click("#theme")
	require.True(t, p.holds(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.documentElement).backgroundColor === "rgb(21, 24, 27)"`))
	p.shot("waterfall-dark")

	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	require.True(t, p.holds(noOverflow))
	p.shot("phone-dark")
	p.click("#theme")
	p.shot("phone-light")

	p.do(chromedp.EmulateViewport(1200, 900))
	p.click("#pause")
	p.choose("route", "")
	p.eventually(`document.querySelectorAll("tr.row").length > 10`)
	p.eventually(`[...document.querySelectorAll("#advice pre")].some(l => l.textContent === 'srv.HandleFunc("GET /account", handler, server.Prefetch(/* the key of "user" */, /* the key of "flags" */))')`)
	require.False(t, p.holds(`document.getElementById("advice").textContent.includes("GET /cart")`), "it prefetches already")
	p.eventually(`[...document.querySelectorAll("#table tr")].some(r => r.textContent === "GET /cart–user, flags, payment–")`)
	require.True(t, p.holds(noOverflow))
	p.choose("route", "GET /cart")
	p.eventually(allRoutes("GET /cart"))
	p.click("button.open")
	p.eventually(`[...document.querySelectorAll(".waterfall li")].some(l => l.textContent === "paymentfrom the handlerrunning" && !l.querySelector(".bar"))`)
	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	require.True(t, p.holds(noOverflow))
	p.shot("prefetch-phone")
	p.do(chromedp.EmulateViewport(1200, 900))
	require.True(t, p.holds(`[...document.querySelectorAll("tr.row")].slice(3).every(row => row.hidden = true)`)) // a shorter picture
	p.shot("prefetch-light")
	p.click("#theme")
	p.shot("prefetch-dark")
	p.click("#theme")
	p.click("button.open")
	p.choose("route", "")
	p.eventually(`document.querySelectorAll("tr.row").length > 10`)
	p.click("#more")
	p.eventually(`document.querySelectorAll("tr.row").length > 25`)
	p.shot("overview-light")
}

func TestHostileNamesAndErrorsAreText(t *testing.T) {
	p, _ := open(t, true, true)
	const route = "GET /hostile/{id}/<b>bold<b>"
	p.eventually(fmt.Sprintf(`[...document.querySelectorAll("#route option")].some(o => o.value === %q)`, route))
	p.choose("route", route)
	p.eventually(allRoutes(route))
	p.click("button.open")
	p.eventually(`document.querySelector(".waterfall .broken .error")?.textContent.includes("<img src=x")`)
	require.True(t, p.holds(notInjected))
	require.True(t, p.holds(`[...document.querySelectorAll("#properties td:first-child")].some(c => c.textContent.includes("<script>"))`))
	require.False(t, p.holds(`(() => { try { document.body.innerHTML = "<b>x</b>"; return true } catch { return false } })()`), "trusted types are enforced")
	p.shot("hostile")
}

func TestPageAsksForTheToken(t *testing.T) {
	p, in := open(t, false, false)
	p.do(chromedp.WaitVisible(chromedp.CSS("#token")))
	require.True(t, p.holds(`document.getElementById("main").hidden`))
	p.shot("login")
	p.do(chromedp.SendKeys(chromedp.CSS("#token"), in.Token()+"\r"), chromedp.WaitVisible(chromedp.CSS("#main")))
	require.True(t, p.holds(`document.getElementById("login").hidden`))
}
