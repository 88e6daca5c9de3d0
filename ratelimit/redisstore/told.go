package redisstore

import (
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// told is what Redis is told of a rule.
type told struct {
	counter string // see counterName
	block   string // see blockName
	head    *redispipe.Head
}

// rules remembers what is told of the rules that are in use, which are few; of more
// than maxRules, such as with limits made up for each call, it is made anew.
type rules struct {
	byRule sync.Map // *told by ratelimit.Rule
	n      atomic.Int32
}

const maxRules = 1000

func (rs *rules) of(r ratelimit.Rule) *told {
	if known, ok := rs.byRule.Load(r); ok {
		return known.(*told)
	}
	t := tell(r, 0)
	if rs.n.Load() < maxRules {
		if _, loaded := rs.byRule.LoadOrStore(r, t); !loaded {
			rs.n.Add(1)
		}
	}
	return t
}

// tell returns what Redis is told of a rule. The time of a test goes with it.
func (s *Store) tell(r ratelimit.Rule) *told {
	if now := s.now(); now != 0 {
		return tell(r, now)
	}
	return s.rules.of(r)
}

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
	return &told{counterName(r), blockName(r), redispipe.NewHead(values...)}
}
