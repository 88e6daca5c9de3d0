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
	//go:embed log_event.lua
	logEventLua string
	//go:embed log_set.lua
	logSetLua string
	//go:embed log_stream.lua
	logStreamLua string
	//go:embed log.lua
	logLua string
	//go:embed window_fixed.lua
	windowFixedLua string
	//go:embed window_calendar.lua
	windowCalendarLua string
	//go:embed window.lua
	windowLua string
	//go:embed pair.lua
	pairLua string
	//go:embed gcra.lua
	gcraLua string
	//go:embed take.lua
	takeLua string
	//go:embed peek.lua
	peekLua string
	//go:embed add.lua
	addLua string
	//go:embed count.lua
	countLua string
	//go:embed each.lua
	eachLua string
	//go:embed group.lua
	groupLua string
)

// algorithm is a way to store counters.
type algorithm struct {
	name   string
	source string
	width  int // report_size in its source
	quota  quotaFunc
}

var algorithms = map[string]*algorithm{
	"buckets":  {"buckets", bucketsLua, 6, quotaFromTimes},
	"log":      {"log", logEventLua + logSetLua + logLua, 5, quotaFromTimes},
	"stream":   {"stream", logEventLua + logStreamLua + logLua, 5, quotaFromTimes},
	"window":   {"window", windowFixedLua + windowLua, 2, windowQuota},
	"calendar": {"calendar", windowCalendarLua + windowLua, 2, windowQuota},
	"gcra":     {"gcra", pairLua + gcraLua, 2, gcraQuota},
}

// scripts holds the store's scripts. The scripts in ops run a single op on many keys, and exist for each kind and algorithm.
// The scripts in group run a group of ops with the same algorithm, except for "mixed", which supports all algorithms.
type scripts struct {
	ops   map[ratelimit.Kind]map[string]*redispipe.Script
	group map[string]*redispipe.Script
}

var theScripts = newScripts("")

// newScripts returns scripts that begin with the Lua code in first.
func newScripts(first string) scripts {
	first += preludeLua
	s := scripts{map[ratelimit.Kind]map[string]*redispipe.Script{}, map[string]*redispipe.Script{}}
	for kind, op := range map[ratelimit.Kind]string{
		ratelimit.Take: takeLua, ratelimit.Peek: peekLua, ratelimit.Add: addLua, ratelimit.Count: countLua,
	} {
		s.ops[kind] = map[string]*redispipe.Script{}
		for name, a := range algorithms {
			source := a.source
			if kind == ratelimit.Take || kind == ratelimit.Peek {
				source, _, _ = strings.Cut(source, "-- Takes and peeks do not need what follows.")
			}
			s.ops[kind][name] = redispipe.NewIntScript(first + source + "\nlocal r = rule(2)\n" + op + eachLua)
		}
	}
	first, all := first+"local algorithms = {}\n", ""
	for name, a := range algorithms {
		s.group[name] = redispipe.NewIntScript(first + a.table() + pairLua + groupLua)
		all += a.table()
	}
	s.group["mixed"] = redispipe.NewIntScript(first + all + pairLua + groupLua)
	return s
}

// table returns Lua code that adds the algorithm to the Lua table algorithms.
func (a *algorithm) table() string {
	return "do\n" + a.source + "algorithms." + a.name + ` = {
  rule_size = rule_size, rule = rule, read = read, room = room, fits = fits, charge = charge, refund = refund, report = report,
}
end
`
}
