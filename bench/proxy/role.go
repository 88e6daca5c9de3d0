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
	"github.com/lazyreq/lazyreq/internal/bareproxy"
)

// The roles of child processes.
const (
	upstreamRole = "proxy.upstream"
	loadRole     = "proxy.load"
	bareRole     = "proxy.bare"
)

// Roles are what child processes of the suite do, for [child.Main].
var Roles = map[string]child.Role{upstreamRole: playUpstream, loadRole: playLoad, bareRole: playBare}

// page is what the upstream answers.
var page = []byte(strings.Repeat("what the upstream has to say\n", 36)[:1024])

// task is what the load does.
type task struct {
	load.Options
	Clients string // a name for them
	Passes  int    // of each client, so many requests pass, and none after that; 0: all
	Pids    []int  // the proxy's processes
}

// result is what came of it.
type result struct {
	load.Result
	Used time.Duration // of processors by the proxy, in the measured time
	Took time.Duration // which was so long
}

func playLoad(text []byte) error {
	var t task
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	var res result
	var began time.Time
	t.Began = func() (err error) {
		began = time.Now()
		res.Used, err = used(t.Pids)
		return err
	}
	t.Ended = func() error {
		total, err := used(t.Pids)
		res.Used, res.Took = total-res.Used, time.Since(began)
		return err
	}
	var err error
	res.Result, err = load.Run(t.Options, func(i int) load.Conn { return t.client(i) })
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

// used returns the processor time of processes, in user and in system mode.
func used(pids []int) (sum time.Duration, err error) {
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
	passes         int // all, if it is 0
	asked          int
	passed, denied load.Answer
}

func (t *task) client(i int) *client {
	text := "GET /some/page?n=1 HTTP/1.1\r\nHost: " + t.Addr + "\r\nUser-Agent: bench\r\nAccept: */*\r\n" +
		"Authorization: " + authorization(t.Clients, i) + "\r\n\r\n"
	return &client{text: []byte(text), passes: t.Passes, passed: load.Answer{Status: "200", Body: page}, denied: load.Answer{Status: "429"}}
}

// authorization returns the header by which a client is known.
func authorization(clients string, i int) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(clients+"-"+strconv.Itoa(i)+":secret"))
}

// Next is for [load.Conn].
func (c *client) Next() []byte {
	c.asked++
	return c.text
}

// Check is for [load.Conn].
func (c *client) Check(got []byte) (whole bool, err error) {
	if c.passes > 0 && c.asked > c.passes {
		return c.denied.Check(got)
	}
	return c.passed.Check(got)
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
	h := bareproxy.Handler(&url.URL{Scheme: "http", Host: upstream}, bareproxy.Transport())
	go func() { _ = bareproxy.Server(h).Serve(l) }() // for as long as the process
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
