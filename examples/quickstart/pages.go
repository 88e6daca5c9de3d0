package main

import (
	"bytes"
	"html/template"
	"net/http"
	"strings"

	"github.com/lazyreq/lazyreq/server"
)

// documents lists the titles that can be searched.
var documents = []string{
	"A Tour of Go", "Effective Go", "Go Concurrency Patterns", "Go by Example", "How to Write Go Code",
	"Redis in Action", "The Go Memory Model", "The Go Programming Language Specification",
}

func findMatches(q string) []string {
	results := []string{}
	for _, d := range documents {
		if strings.Contains(strings.ToLower(d), strings.ToLower(q)) {
			results = append(results, d)
		}
	}
	return results
}

const frame = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lazyreq quickstart</title>
<style>
 body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif; color: #222 }
 h1 { font-size: 1.6rem } code { background: #f2f2ee; padding: .1rem .3rem; border-radius: .2rem }
 table { border-collapse: collapse; width: 100% } td { padding: .45rem .6rem .45rem 0; border-top: 1px solid #ddd; vertical-align: top }
 form { display: inline } input, button { font: inherit; padding: .15rem .5rem } td:first-child { white-space: nowrap }
</style>
`

var indexPage = template.Must(template.New("index").Parse(frame + `
<h1>Lazy properties of a request</h1>
<p>This page touched none of them. Each of the links below reads what it needs; the response's
<code>Server-Timing</code> says what that was, and how long it took.</p>
<table>
<tr><td><a href="/fast">GET /fast</a><td>Touches nothing: no cookie, no store, no timing. (204: the browser stays here.)
<tr><td><form action="/search">GET /search <input name="q" value="go" size="6" aria-label="search for"> <button>Search</button></form>
 <td>The rate limit: five a minute. The sixth is asked to slow down.
<tr><td><a href="/count">GET /count</a><td>Your searches of the last 20 seconds.
<tr><td><form action="/login" method="post">POST /login <input name="user" value="ada" size="6" aria-label="user"> <button>Log in</button></form>
 <td>Parameters and the session, with a new id.
<tr><td><a href="/me">GET /me</a><td>Who you are, read from the session, and how often you asked.
<tr><td><form action="/logout" method="post">POST /logout <button>Log out</button></form><td>Destroys the session.
</table>
`))

var slowDownPage = template.Must(template.New("slow-down").Parse(frame + `
<h1>Slow down</h1>
{{if .}}<p>You have searched five times within a minute. The next search passes in
<strong>{{.}} second{{if ne . 1}}s{{end}}</strong>.</p>
{{else}}<p>You can search again now.</p>{{end}}
<p><a href="/">Back</a></p>
`))

func index(w http.ResponseWriter, _ *server.Request) error { return writePage(w, indexPage, nil) }

func writePage(w http.ResponseWriter, page *template.Template, data any) error {
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := b.WriteTo(w)
	return err
}
