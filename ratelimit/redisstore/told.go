package redisstore

import (
	"sync"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// told is what Redis is told of a rule, and what it takes to read what it answers.
type told struct {
	counter string // see counterName
	block   string // see blockName
	head    *redispipe.Head

	takes             string // the name of the script of lists
	read              reader
	limit, burst, per int64
}

// rules remembers what is told of the rules that are in use, which are few; before there
// are more than maxRules, such as with limits made up for each call, it forgets them.
type rules struct {
	mu   sync.RWMutex
	told map[toldOf]*told
}

type toldOf struct {
	rule ratelimit.Rule
	now  int64
}

const maxRules = 1000

func (rs *rules) of(what toldOf) *told {
	rs.mu.RLock()
	t := rs.told[what]
	rs.mu.RUnlock()
	if t != nil {
		return t
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.told == nil || len(rs.told) >= maxRules {
		rs.told = make(map[toldOf]*told)
	}
	if rs.told[what] == nil { // everybody gets the same one
		rs.told[what] = tell(what.rule, what.now)
	}
	return rs.told[what]
}

// tell returns what Redis is told of a rule. The time of a test goes with it.
func (s *Store) tell(r ratelimit.Rule) *told { return s.rules.of(toldOf{r, s.now()}) }

// now is 0 for the server's time.
func (s *Store) now() int64 {
	if s.clock == nil {
		return 0
	}
	return s.clock().UnixMicro()
}

func tell(r ratelimit.Rule, now int64) *told {
	lua := r.Algorithm()
	if r.Encoding() == ratelimit.Stream {
		lua = "stream"
	}
	values := []any{lua, now, milliseconds(max(r.Expiry(), r.Span()+r.Interval())), r.Limit(), r.Per().Microseconds()}
	switch {
	case r.Interval() > 0:
		values = append(values, r.Interval().Microseconds(), int64(r.Span()/r.Interval())+1, buckets(r.Per(), r))
	default:
		values = append(values, r.Burst(), 0, 0)
	}
	if b := r.Block(); b.After > 0 {
		values = append(values, b.After, b.For.Microseconds())
	}
	return &told{
		counter: counterName(r), block: blockName(r), head: redispipe.NewHead(values...),
		takes: "takes:" + r.Algorithm(), read: readers[r.Algorithm()],
		limit: r.Limit(), burst: r.Burst(), per: r.Per().Microseconds(),
	}
}
