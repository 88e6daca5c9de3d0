package redispipe

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/redis/go-redis/v9"
)

// maxJoined is the largest number of calls in one EVALSHA if they aren't lists, whose
// keys cost Redis less than half.
const maxJoined = 64

// command is one EVALSHA, or EVAL, that go-redis must not send again when it did not
// get the reply: the script may have run.
type command interface {
	redis.Cmder
	NoRetry() bool
	reply() (Reply, error)
}

type valuesCommand struct{ *redis.Cmd }

// NoRetry is what go-redis asks.
func (valuesCommand) NoRetry() bool { return true }

func (c valuesCommand) reply() (Reply, error) {
	values, err := c.Slice()
	return Reply{Values: values}, err
}

type intsCommand struct{ *redis.IntSliceCmd }

// NoRetry is what go-redis asks.
func (intsCommand) NoRetry() bool { return true }

func (c intsCommand) reply() (Reply, error) {
	ints, err := c.Result()
	return Reply{Ints: ints}, err
}

type textCommand struct{ *redis.StringCmd }

// NoRetry is what go-redis asks.
func (textCommand) NoRetry() bool { return true }

func (c textCommand) reply() (Reply, error) {
	text, err := c.Result()
	return Reply{Text: text}, err
}

// joiner makes lists of the calls that can be one command.
type joiner struct {
	apart bool // only those whose keys are in one slot for sure
	most  int  // calls, and keys of lists, in one command
	lists [][]*call
	sizes []int // of the lists, as Options.Joined counts
	by    map[joint]int
}

// joint is what calls that can be one command have in common.
type joint struct {
	script *Script
	tag    string
}

// join makes lists of the calls that can be one command: of those with the same script,
// all, or if apart only those whose keys are in one slot for sure.
func join(calls []*call, apart bool, most int) [][]*call {
	j := joiner{apart: apart, most: most, by: make(map[joint]int, 4)}
	for _, c := range calls {
		j.add(c)
	}
	return j.lists
}

func (j *joiner) add(c *call) {
	what, most := joint{script: c.Script}, j.most
	if j.apart {
		what.tag = c.tag()
	}
	if c.Head == nil {
		most = min(most, maxJoined)
	}
	i, found := j.by[what]
	if found && !c.alone && j.sizes[i]+c.size() <= most {
		j.lists[i] = append(j.lists[i], c)
		j.sizes[i] += c.size()
		return
	}
	j.lists, j.sizes = append(j.lists, []*call{c}), append(j.sizes, c.size())
	if !c.alone {
		j.by[what] = len(j.lists) - 1
	}
}

// newCommand makes the calls' command, which names the script by its hash or gives its
// source.
func newCommand(ctx context.Context, calls []*call, name, script string) command {
	s := calls[0].Script
	args := []any(nil)
	if s.each > 0 {
		args = listArguments(calls, name, script)
	} else {
		args = arguments(calls, name, script)
	}
	keys := int8(0)
	if args[2].(int) > 0 {
		keys = 3
	}
	switch {
	case s.each > 0:
		cmd := redis.NewStringCmd(ctx, args...)
		cmd.SetFirstKeyPos(keys)
		return textCommand{cmd}
	case s.ints:
		cmd := redis.NewIntSliceCmd(ctx, args...)
		cmd.SetFirstKeyPos(keys)
		return intsCommand{cmd}
	default:
		cmd := redis.NewCmd(ctx, args...)
		cmd.SetFirstKeyPos(keys)
		return valuesCommand{cmd}
	}
}

// seed returns the argument that no other command gets.
func seed() int64 { return 1 + rand.Int64N(1<<52) }

// listArguments puts lists together as list.lua takes them. It brings the calls into the
// order of the reply.
func listArguments(calls []*call, name, script string) []any {
	byHead(calls)
	keys := 0
	for _, c := range calls {
		keys += len(c.Keys)
	}
	args := append(make([]any, 0, keys+16), name, script, keys)
	for _, c := range calls {
		for _, k := range c.Keys {
			args = append(args, k)
		}
	}
	args = append(args, seed())
	for len(calls) > 0 {
		var n int
		args, n = appendList(args, calls)
		calls = calls[n:]
	}
	return args
}

// appendList appends the list that the first calls are, and returns how many they are. If
// they give different numbers for a key, those that aren't given are 1.
func appendList(args []any, calls []*call) ([]any, int) {
	head, keys, mode, n := calls[0].Head, 0, 0, 0
	for n < len(calls) && calls[n].Head == head {
		keys += len(calls[n].Keys)
		mode = max(mode, calls[n].Mode)
		n++
	}
	args = append(append(args, len(head.values)), head.values...)
	args = append(args, keys, mode)
	if mode == 0 {
		return args, n
	}
	for _, c := range calls[:n] {
		for i := range c.Keys {
			for _, v := range c.Numbers[i*c.Mode : (i+1)*c.Mode] {
				args = append(args, v)
			}
			for range mode - c.Mode {
				args = append(args, 1)
			}
		}
	}
	return args, n
}

// byHead sorts calls so that those of one list are together. It is stable: lists of one
// head are in the order in which they came.
func byHead(calls []*call) {
	for i := 1; i < len(calls); i++ {
		if calls[i-1].Head == calls[i].Head {
			continue
		}
		heads := make(map[*Head]int, 8)
		for _, c := range calls {
			if _, known := heads[c.Head]; !known {
				heads[c.Head] = len(heads)
			}
		}
		slices.SortStableFunc(calls, func(a, b *call) int { return heads[a.Head] - heads[b.Head] })
		return
	}
}

// arguments puts the calls together as frame.lua takes them.
func arguments(calls []*call, name, script string) []any {
	var known [8]*Head
	heads, keys, size := known[:0], 0, 5
	for _, c := range calls {
		keys += len(c.Keys)
		size += len(c.Keys) + len(c.Args)
		for _, a := range c.Args {
			if h, ok := a.(*Head); ok && !slices.Contains(heads, h) {
				heads = append(heads, h)
				size += 2 + len(h.values)
			}
		}
	}
	args := append(make([]any, 0, size), name, script, keys)
	for _, c := range calls {
		for _, k := range c.Keys {
			args = append(args, k)
		}
	}
	args = append(args, seed(), len(heads))
	for i, h := range heads {
		args = append(append(args, i, len(h.values)), h.values...)
	}
	for _, c := range calls {
		for _, a := range c.Args {
			if h, ok := a.(*Head); ok {
				a = slices.Index(heads, h)
			}
			args = append(args, a)
		}
	}
	return args
}
