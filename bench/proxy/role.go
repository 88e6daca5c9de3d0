package proxy

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/load"
)

// The roles of child processes.
const (
	upstreamRole = "proxy.upstream"
	loadRole     = "proxy.load"
	bareRole     = "proxy.bare"
)

// Roles are what child processes of the suite do, for [child.Main].
var Roles = map[string]child.Role{upstreamRole: playUpstream, loadRole: playLoad, bareRole: playBare}

// page is the upstream's response body.
var page = []byte(strings.Repeat("what the upstream has to say\n", 36)[:1024])

// task configures the load.
type task struct {
	load.Options
	Clients string // a name for them
	Passes  int    // requests of each client that are allowed; 0 means all
	Pids    []int  // the proxy's processes
}

// result is the outcome of a task.
type result struct {
	load.Result
	Passed int // of the requests
	// Used is the proxy's processor time during the measurement.
	Used     time.Duration
	Took     time.Duration
	Answered int
}

// loading is a load that is sent.
type loading struct {
	task
	clients []*client
}

func playLoad(text []byte) error {
	var l loading
	if err := json.Unmarshal(text, &l.task); err != nil {
		return err
	}
	var before, after moment
	l.Began = func() (err error) { before, err = l.snapshot(); return err }
	l.Ended = func() (err error) { after, err = l.snapshot(); return err }
	res, err := load.Run(l.Options, l.client)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result{
		Result: res, Passed: l.sum(func(c *client) int { return c.passed }),
		Used: after.used - before.used, Took: after.at.Sub(before.at), Answered: after.answered - before.answered,
	})
}

// moment is the progress at a time.
type moment struct {
	at       time.Time
	used     time.Duration
	answered int
}

func (l *loading) snapshot() (m moment, err error) {
	m.at = time.Now()
	m.answered = l.sum(func(c *client) int { return c.passed + c.denied })
	m.used, err = totalProcessorTime(l.Pids)
	return m, err
}

func (l *loading) sum(of func(*client) int) (n int) {
	for _, c := range l.clients {
		n += of(c)
	}
	return n
}

// totalProcessorTime returns the processor time of processes, in user and in system mode.
func totalProcessorTime(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		t, err := processorTime(pid)
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// client is a connection of the load.
type client struct {
	text           []byte
	passes         int // 0 means all
	yes, no        load.Answer
	passed, denied int
}

func (l *loading) client(i int) load.Conn {
	text := "GET /some/page?n=1 HTTP/1.1\r\nHost: " + l.Addr + "\r\nUser-Agent: bench\r\nAccept: */*\r\n" +
		"Authorization: " + authorizationHeader(l.Clients, i) + "\r\n\r\n"
	c := &client{text: []byte(text), passes: l.Passes, yes: load.Answer{Status: "200", Body: page}, no: load.Answer{Status: "429"}}
	l.clients = append(l.clients, c)
	return c
}

// authorizationHeader returns the header that identifies a client.
func authorizationHeader(clients string, i int) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(clients+"-"+strconv.Itoa(i)+":secret"))
}

// Next is for [load.Conn].
func (c *client) Next() []byte { return c.text }

// Check is for [load.Conn].
func (c *client) Check(got []byte) (whole bool, err error) {
	answer, count := &c.yes, &c.passed
	if c.passes > 0 && c.passed == c.passes {
		answer, count = &c.no, &c.denied
	}
	if whole, err = answer.Check(got); whole && err == nil {
		*count++
	}
	return whole, err
}

// playBare serves as the bare proxy, until the standard input ends. The task is the
// upstream's address.
func playBare(text []byte) error {
	var upstream string
	if err := json.Unmarshal(text, &upstream); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := bareHandler(&url.URL{Scheme: "http", Host: upstream}, bareTransport())
	go func() { _ = bareServer(h).Serve(l) }() // for as long as the process
	fmt.Println(l.Addr())
	return eachLine(func() error { return errors.New("the bare proxy is asked nothing") })
}

// eachLine calls fn for each line of the standard input.
func eachLine(fn func() error) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := fn(); err != nil {
			return err
		}
	}
	return in.Err()
}
