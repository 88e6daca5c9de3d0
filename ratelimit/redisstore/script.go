package redisstore

import (
	_ "embed" // the parts of the scripts
	"strings"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	//go:embed prelude.lua
	preludeLua string
	//go:embed buckets.lua
	bucketsLua string
	//go:embed log.lua
	logLua string
	//go:embed window.lua
	windowLua string
	//go:embed gcra.lua
	gcraLua string
	//go:embed block.lua
	blockLua string
	//go:embed driver.lua
	driverLua string
	//go:embed calls.lua
	callsLua string

	//go:embed lists.lua
	listsLua string
	//go:embed buckets_takes.lua
	bucketsTakesLua string
	//go:embed log_takes.lua
	logTakesLua string
	//go:embed window_takes.lua
	windowTakesLua string
	//go:embed gcra_takes.lua
	gcraTakesLua string
	//go:embed takes.lua
	takesLua string
)

// scripts has one script for each algorithm, so that no call pays for the others, and
// under "" the one for groups of several; and one for lists of takes of each algorithm.
var scripts = map[string]*redispipe.Script{
	"buckets": newScript(bucketsLua),
	"log":     newScript(logLua),
	"window":  newScript(windowLua),
	"gcra":    newScript(gcraLua),
	"":        newScript(bucketsLua, logLua, windowLua, gcraLua),

	"takes:buckets": newTakes(answerBytes, bucketsLua, bucketsTakesLua),
	"takes:log":     newTakes(answerBytes, logLua, logTakesLua),
	"takes:window":  newTakes(windowBytes, "", windowTakesLua),
	"takes:gcra":    newTakes(gcraBytes, "", gcraTakesLua),
}

// newScript puts a script together.
func newScript(algorithms ...string) *redispipe.Script {
	return redispipe.NewIntScript(lines(preludeLua, lines(algorithms...), driverFunction, callsLua))
}

// newTakes puts a script of lists together, whose replies have so many bytes for each key.
// If the takes can do without it, there is no algorithm.
func newTakes(each int, algorithm, takes string) *redispipe.Script {
	driver := driverFunction
	if algorithm == "" {
		driver = "local driver"
	}
	return redispipe.NewListScript(lines(preludeLua, algorithm, driver, listsLua, takes, takesLua), each)
}

// driverFunction makes of the driver a function, which makes its own only when it is
// called: most calls are done without it.
var driverFunction = lines("local function driver()", blockLua, driverLua, "return run, series", "end")

func lines(parts ...string) string { return strings.Join(parts, "\n") + "\n" }

// script returns the script that knows the rules of all ops, nil if there is none.
func (s *Store) script(ops []ratelimit.Op) *redispipe.Script {
	first := ops[0].Rule.Algorithm()
	for i := range ops[1:] {
		if a := ops[1+i].Rule.Algorithm(); a != first {
			if s.scripts[a] == nil || s.scripts[first] == nil {
				return nil
			}
			return s.scripts[""]
		}
	}
	return s.scripts[first]
}
