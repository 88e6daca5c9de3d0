package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/lazyreq/lazyreq/bench/session"
)

func sessionPrograms(check func(v *visitor) (seen string, n int)) []program {
	var out []program
	for _, c := range session.Contenders {
		out = append(out, sessionProgram(c, check))
	}
	out[0].name = ours + "sessions"
	return append(out, sessionProgram(session.Contender{Name: "gin", Open: openGin}, check))
}

// sessionProgram returns a program for a session library. check has a visitor who is logged in.
func sessionProgram(c session.Contender, check func(v *visitor) (seen string, n int)) program {
	return program{c.Name, func(ctx context.Context, addr string) (string, int, error) {
		h, end, err := c.Open(addr)
		if err != nil {
			return "", 0, err
		}
		v := &visitor{ctx: ctx, handler: h}
		w := v.send("POST", "/login?ada", http.NoBody)
		for _, c := range w.Result().Cookies() {
			v.cookie = c.Name + "=" + c.Value
		}
		v.expect(v.get("user") == "ada", "the user is not logged in")
		seen, n := check(v)
		return seen, n, errors.Join(v.err, end())
	}}
}

// checkWriters has requests write different values to the session at the same time, and counts the lost values.
func checkWriters(v *visitor) (string, int) {
	const writers = 50
	var slow []*slowRequest
	for i := range writers {
		slow = append(slow, v.begin(fmt.Sprint("/put?value-", i)))
	}
	for _, s := range slow {
		v.expect(s.end() == http.StatusOK, "a write has failed")
	}
	lost := 0
	for i := range writers {
		if v.get(fmt.Sprint("value-", i)) == "" {
			lost++
		}
	}
	return fmt.Sprint(lost), lost
}

// checkLogout checks whether a session is back after the end of a request that began before the logout.
func checkLogout(v *visitor) (string, int) {
	slow := v.begin("/put?value")
	v.expect(v.send("POST", "/logout", http.NoBody).Code == http.StatusOK, "the logout has failed")
	v.expect(v.get("user") == "", "the user is still logged in")
	status := slow.end()
	if v.get("user") != "" {
		return "yes", status
	}
	return fmt.Sprintf("no, it gets a %d", status), status
}

// visitor sends requests of a session. It keeps the errors.
type visitor struct {
	ctx     context.Context
	handler http.Handler
	cookie  string
	err     error
}

func (v *visitor) expect(ok bool, failure string) {
	if !ok {
		v.err = errors.Join(v.err, errors.New(failure))
	}
}

func (v *visitor) send(method, target string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(v.ctx, method, target, body)
	r.Header.Set("Cookie", v.cookie)
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	return w
}

// get returns a value of the session.
func (v *visitor) get(name string) string {
	w := v.send("GET", "/get?"+name, http.NoBody)
	v.expect(w.Code == http.StatusOK, "a value cannot be read")
	return w.Body.String()
}

// slowRequest is a request whose body does not end until end is called.
type slowRequest struct {
	reading, finish chan struct{}
	status          chan int
}

// begin sends a POST request, and returns when its handler reads the body.
func (v *visitor) begin(target string) *slowRequest {
	s := &slowRequest{make(chan struct{}, 1), make(chan struct{}), make(chan int, 1)}
	go func() { s.status <- v.send("POST", target, s).Code }()
	select {
	case <-s.reading:
	case status := <-s.status:
		s.status <- status
		v.expect(false, fmt.Sprintf("%s does not read the body, and its status is %d", target, status))
	}
	return s
}

// Read implements [io.Reader].
func (s *slowRequest) Read([]byte) (int, error) {
	select {
	case s.reading <- struct{}{}:
	default:
	}
	<-s.finish
	return 0, io.EOF
}

// end ends the body, and returns the status of the response.
func (s *slowRequest) end() int {
	close(s.finish)
	return <-s.status
}
