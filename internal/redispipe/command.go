package redispipe

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/redis/go-redis/v9"
)

// maxJoined is the largest number of calls in one EVALSHA: Redis does nothing else
// while it runs.
const maxJoined = 64

// command is one EVALSHA, or EVAL, that go-redis must not send again when it did not
// get the reply: the script may have run.
type command interface {
	redis.Cmder
	NoRetry() bool
	reply() (ints []int64, values []any, err error)
}

type valuesCommand struct{ *redis.Cmd }

// NoRetry is what go-redis asks.
func (valuesCommand) NoRetry() bool { return true }

func (c valuesCommand) reply() (_ []int64, values []any, err error) {
	values, err = c.Slice()
	return nil, values, err
}

type intsCommand struct{ *redis.IntSliceCmd }

// NoRetry is what go-redis asks.
func (intsCommand) NoRetry() bool { return true }

func (c intsCommand) reply() (ints []int64, _ []any, err error) {
	ints, err = c.Result()
	return ints, nil, err
}

// join makes one list of the calls that can be one command: of those with the same
// script, all, or if apart only those whose keys are in one slot for sure.
func join(calls []*call, apart bool) [][]*call {
	var lists [][]*call
	for _, c := range calls {
		i := -1
		if !c.alone {
			i = slices.IndexFunc(lists, func(l []*call) bool {
				return l[0].Script == c.Script && len(l) < maxJoined && !l[0].alone && (!apart || l[0].tag() == c.tag())
			})
		}
		if i >= 0 {
			lists[i] = append(lists[i], c)
		} else {
			lists = append(lists, append(make([]*call, 0, len(calls)), c))
		}
	}
	return lists
}

// newCommand makes the calls' command, which names the script by its hash or gives its
// source.
func newCommand(ctx context.Context, calls []*call, name, script string) command {
	args := arguments(calls, name, script)
	keys := args[2].(int) > 0
	if calls[0].Script.ints {
		cmd := redis.NewIntSliceCmd(ctx, args...)
		if keys {
			cmd.SetFirstKeyPos(3)
		}
		return intsCommand{cmd}
	}
	cmd := redis.NewCmd(ctx, args...)
	if keys {
		cmd.SetFirstKeyPos(3)
	}
	return valuesCommand{cmd}
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
	args = append(args, 1+rand.Int64N(1<<52), len(heads))
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
