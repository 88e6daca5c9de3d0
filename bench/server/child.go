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

	"github.com/lazyreq/lazyreq/bench/rig"
)

// The variables by which the program knows that it is a child of its own.
const (
	roleVar    = "LAZYREQ_BENCH_ROLE"    // a role in JSON
	profileVar = "LAZYREQ_BENCH_PROFILE" // a folder: every stack leaves a CPU profile there
)

// role is what a child is to do. One of its fields is set.
type role struct {
	Stack string `json:",omitempty"`
	Redis string `json:",omitempty"` // of the stack
	Load  *load  `json:",omitempty"`
}

// Main does the work of a child and ends the process, if this process is one that
// the suite has started. It belongs at the very beginning of main.
func Main() {
	text := os.Getenv(roleVar)
	if text == "" {
		return
	}
	if err := play(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	if r.Load != nil {
		res, err := r.Load.run()
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(res)
	}
	for _, s := range stacks {
		if s.name == r.Stack {
			return s.serve(r.Redis)
		}
	}
	return fmt.Errorf("no stack is called %q", r.Stack)
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
