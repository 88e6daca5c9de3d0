package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"
)

// variable is the environment variable with the options of a worker process.
const variable = "LAZYREQ_WORKER"

// options holds the options of a worker process.
type options struct {
	URL   string // URL of the Redis
	Name  string
	Users int
}

// childOptions returns the options of this process. It returns false if no crew has started the process.
func childOptions() (o options, child bool) {
	text, child := os.LookupEnv(variable)
	if child && json.Unmarshal([]byte(text), &o) != nil {
		return options{}, false
	}
	return o, child
}

// crew is a group of running worker processes.
type crew struct {
	options options

	mu      sync.Mutex // guards out
	out     io.Writer
	started int
	readers sync.WaitGroup
}

// member is one process of a crew.
type member struct {
	name string
	cmd  *exec.Cmd
	in   io.Closer // closing it ends the process
}

// run keeps n processes running until ctx ends. It kills one of them at each interval every, and starts a new one.
func (c *crew) run(ctx context.Context, n int, every time.Duration) (err error) {
	var members []*member
	defer func() {
		for _, m := range members {
			_ = m.in.Close()
		}
		c.readers.Wait()
		for _, m := range members {
			_ = m.cmd.Wait() // the error is ignored, since a worker prints its errors
		}
	}()
	for range n {
		m, err := c.start()
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.print("the end")
			return nil
		case <-tick.C:
		}
		i := rand.IntN(len(members))
		c.print(members[i].name + " is killed")
		_ = members[i].cmd.Process.Kill()
		_ = members[i].in.Close()
		_ = members[i].cmd.Wait()
		if members[i], err = c.start(); err != nil {
			members = append(members[:i], members[i+1:]...)
			return err
		}
	}
}

func (c *crew) start() (*member, error) {
	bin, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.started++
	o := c.options
	o.Name = fmt.Sprintf("worker %d", c.started)
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	m := &member{name: o.Name, cmd: exec.Command(bin)}
	m.cmd.Env = append(os.Environ(), variable+"="+string(text))
	m.cmd.Stderr = os.Stderr
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// StdoutPipe is no alternative: Wait would close its pipe before all output was read.
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childOut.Close()
	m.cmd.Stdout = childOut
	if err := m.cmd.Start(); err != nil {
		_ = out.Close()
		return nil, err
	}
	c.print(m.name + " starts")
	c.readers.Go(func() {
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.print(m.name + ": " + lines.Text())
		}
	})
	return m, nil
}

func (c *crew) print(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, time.Now().Format("15:04:05.000"), line)
}
