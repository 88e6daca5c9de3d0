package redisstore

import (
	_ "embed" // the parts of the scripts

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
)

// scripts has one script for each algorithm, so that no call pays for the others, and
// under "" the one for groups of several.
var scripts = map[string]*redispipe.Script{
	"buckets": newScript(bucketsLua),
	"log":     newScript(logLua),
	"window":  newScript(windowLua),
	"gcra":    newScript(gcraLua),
	"":        newScript(bucketsLua, logLua, windowLua, gcraLua),
}

// newScript puts a script together. The driver is a function, which makes its own only
// when it is called: most calls are done without it.
func newScript(algorithms ...string) *redispipe.Script {
	src := preludeLua + "\n"
	for _, a := range algorithms {
		src += a + "\n"
	}
	src += "local function driver()\n" + blockLua + "\n" + driverLua + "\nreturn run\nend\n\n" + callsLua
	return redispipe.NewIntScript(src)
}

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
