package server

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const fullQuery = "go"

// load is what a stack is asked: by Conns connections at once, each of which sends the
// next request when it has the answer. Of 100 requests of a connection, Percent are
// for /full, evenly spread.
type load struct {
	Addr    string
	Cookie  string
	Conns   int
	Percent int
	WarmUp  time.Duration // before anything is measured
	Measure time.Duration
}

// loaded is what came of it.
type loaded struct {
	Requests   int           // all of them, also while warming up
	Throughput float64       // per second
	P50, P99   time.Duration // of those that were measured
	Wrong      string        // the first wrong answer, "" if there was none
}

// sum makes the result of what was measured.
func (l *load) sum(requests int, took []time.Duration) (loaded, error) {
	if len(took) == 0 {
		return loaded{}, errors.New("no answer while it was measured")
	}
	slices.Sort(took)
	return loaded{
		Requests:   requests,
		Throughput: float64(len(took)) / l.Measure.Seconds(),
		P50:        took[len(took)/2],
		P99:        took[len(took)*99/100],
	}, nil
}

// question is a request as it is sent, and the body that is its answer.
type question struct {
	text   []byte
	answer []byte
}

func (l *load) question(target string, p page) question {
	text := "GET " + target + " HTTP/1.1\r\nHost: " + l.Addr + "\r\nCookie: " + l.Cookie + "\r\n\r\n"
	return question{[]byte(text), []byte(p.body())}
}

// mix chooses what a connection asks next.
type mix struct {
	light, full question
	percent     int
	credit      int // hundredths of a request for /full
}

// mix returns that of connection i: connections are not in step.
func (l *load) mix(i int) mix {
	return mix{
		light:   l.question("/light", lightPage),
		full:    l.question("/full?q="+fullQuery, page{user, fullQuery}),
		percent: l.Percent,
		credit:  i * 37 % 100,
	}
}

func (m *mix) next() *question {
	if m.credit += m.percent; m.credit >= 100 {
		m.credit -= 100
		return &m.full
	}
	return &m.light
}

var (
	errWrong      = errors.New("wrong answer")
	statusOK      = []byte("HTTP/1.1 200 OK\r\n")
	contentLength = []byte("\r\nContent-Length: ")
	endOfHeader   = []byte("\r\n\r\n")
)

// check says whether got is the whole answer, and returns an error that is errWrong if
// it is, or is going to be, another one.
func (q *question) check(got []byte) (whole bool, err error) {
	if n := min(len(got), len(statusOK)); !bytes.Equal(got[:n], statusOK[:n]) {
		line, _, _ := bytes.Cut(got, endOfHeader[:2])
		return false, fmt.Errorf("%w: %s", errWrong, line)
	}
	header, body, ok := bytes.Cut(got, endOfHeader)
	if !ok {
		return false, nil
	}
	_, value, _ := bytes.Cut(header, contentLength)
	value, _, _ = bytes.Cut(value, endOfHeader[:2])
	if length, err := strconv.Atoi(string(value)); err != nil || length != len(q.answer) {
		return false, fmt.Errorf("%w: a body of %q bytes, want %d", errWrong, value, len(q.answer))
	}
	if len(body) < len(q.answer) {
		return false, nil
	}
	if !bytes.Equal(body, q.answer) {
		return false, fmt.Errorf("%w: %q, want %q", errWrong, body, q.answer)
	}
	return true, nil
}
