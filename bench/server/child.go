package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/load"
	"github.com/lazyreq/lazyreq/bench/rig"
)

// profileVar names a folder: every stack leaves a CPU profile there.
const profileVar = "LAZYREQ_BENCH_PROFILE"

// The roles of child processes.
const (
	stackRole = "server.stack"
	loadRole  = "server.load"
)

// task is the one of a stack.
type task struct {
	Stack string
	Redis string
}

// Roles are what child processes of the suite do, for [child.Main].
var Roles = map[string]child.Role{stackRole: playStack, loadRole: playLoad}

func playLoad(text []byte) error {
	var l asked
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	res, err := load.Run(l.Options, func(i int) load.Conn { m := l.newMix(i); return &m })
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

func playStack(text []byte) error {
	var t task
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	for _, s := range stacks {
		if s.name == t.Stack {
			return s.serve(t.Redis)
		}
	}
	return fmt.Errorf("no stack is called %q", t.Stack)
}

// serve serves until the standard input ends, which it does with the parent. It
// prints its address, and for each line of input the processor time that it took.
func (s stack) serve(redisAddr string) error {
	h, err := s.open(redisAddr)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if dir := os.Getenv(profileVar); dir != "" {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", s.name, os.Getpid())))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	go func() { _ = (&http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}).Serve(l) }() // for as long as the process
	fmt.Println(l.Addr())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(rig.ProcessorTime().Microseconds())
	}
	return in.Err()
}
