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
	//go:embed log_set.lua
	logSetLua string
	//go:embed log_stream.lua
	logStreamLua string
	//go:embed window.lua
	windowLua string
	//go:embed gcra.lua
	gcraLua string
	//go:embed takes.lua
	takesLua string
	//go:embed group.lua
	groupLua string
)

// algorithm is how the counters of a rule are kept.
type algorithm struct {
	name  string
	width int // how many integers the scripts show of a counter
	quota quotaFunc
}

var algorithms = map[string]*algorithm{
	"buckets": {"buckets", 6, quotaFromTimes},
	"log":     {"log", 5, quotaFromTimes},
	"stream":  {"stream", 5, quotaFromTimes},
	"window":  {"window", 2, windowQuota},
	"gcra":    {"gcra", 2, gcraQuota},
}

// algorithmOf returns the algorithm of a rule, nil if the store has none.
func algorithmOf(r ratelimit.Rule) *algorithm {
	if r.Layout().Stream {
		return algorithms["stream"]
	}
	return algorithms[r.Algorithm()]
}

// scripts are the store's scripts, by the algorithm: of a takes script, or of a group script,
// which is called "mixed" if it has all algorithms. So no call pays for what it does not need.
type scripts struct{ takes, group map[string]*redispipe.Script }

var theScripts = newScripts("")

// newScripts returns scripts with a first part of their own.
func newScripts(first string) scripts {
	sources := map[string]string{
		"buckets": bucketsLua,
		"log":     logLua + logSetLua,
		"stream":  logLua + logStreamLua,
		"window":  windowLua,
		"gcra":    gcraLua,
		"mixed":   bucketsLua + logLua + logSetLua + logStreamLua + windowLua + gcraLua,
	}
	s := scripts{make(map[string]*redispipe.Script), make(map[string]*redispipe.Script)}
	for name, source := range sources {
		s.group[name] = redispipe.NewIntScript(first + preludeLua + source + groupLua)
		if name != "mixed" {
			source, _, _ = strings.Cut(source, "-- Only groups need what follows.")
			s.takes[name] = redispipe.NewIntScript(first + preludeLua + source + "local a = algorithms." + name + "\n" + takesLua)
		}
	}
	return s
}
