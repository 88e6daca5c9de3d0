package redisstore

import (
	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// list is takes by one rule, of any number of subjects, that are one call of a list.
type list struct {
	told  *told
	takes []takes
}

// takes is equal takes of one subject, one after another.
type takes struct {
	op  *ratelimit.Op
	out []ratelimit.Result // of each
	to  int                // after the last of them among the ops of a Do
}

// listed tells whether a group is one take of a list: a single one that isn't ahead, by a
// rule without a block, which would need another key.
func listed(group []ratelimit.Op) bool {
	op := &group[0]
	return len(group) == 1 && op.Kind == ratelimit.Take && op.Ahead == 0 && op.Rule.Block().After == 0
}

// call returns the list's call.
func (s *Store) listCall(l *list) redispipe.Call {
	c := redispipe.Call{Script: s.scripts[l.told.takes], Head: l.told.head, Keys: make([]string, len(l.takes))}
	for i, t := range l.takes {
		c.Keys[i] = s.key(t.op.Key, l.told.counter)
		switch {
		case len(t.out) > 1:
			c.Mode = 2
		case t.op.N > 1:
			c.Mode = max(c.Mode, 1)
		}
	}
	for _, t := range l.takes {
		if c.Mode > 0 {
			c.Numbers = append(c.Numbers, t.op.N)
		}
		if c.Mode > 1 {
			c.Numbers = append(c.Numbers, int64(len(t.out)))
		}
	}
	return c
}

// results reads the list's reply.
func (l *list) results(text string, keys []string) error {
	each := len(text) / len(l.takes)
	for i, t := range l.takes {
		taken, err := l.told.series(text[i*each:(i+1)*each], t.op.N, keys[i])
		if err != nil {
			return err
		}
		for j := range t.out {
			t.out[j] = taken.result(j)
		}
	}
	return nil
}

// series reads the part of a reply that is of one key.
func (t *told) series(reply string, n int64, key string) (series, error) {
	taken := t.read(reply, t, n)
	switch taken.passed {
	case foreignPassed:
		return taken, isForeign(key)
	case overflowPassed:
		return taken, ratelimit.ErrOverflow
	}
	return taken, nil
}
