package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// wave is groups that are sent together. No two calls of it have the same subject, whose
// groups would then have no order; a list does what it has one after another.
type wave struct {
	store *Store
	apart bool // keys that aren't in one slot are different calls

	parts    []part
	lists    map[listKey]int // which part takes more
	subjects map[string]int  // which part a subject is in
}

// part is one call of a wave: a list, or a group.
type part struct {
	list *list
	ops  []ratelimit.Op
	out  []ratelimit.Result
}

type listKey struct {
	told *told
	slot string // the subject, if keys are kept apart
}

func (s *Store) newWave() *wave {
	return &wave{store: s, apart: s.pipe.Apart(), lists: map[listKey]int{}, subjects: map[string]int{}}
}

// add adds a group, the first op of which is number i, unless it has to wait for another
// of its subject.
func (w *wave) add(i int, group []ratelimit.Op, out []ratelimit.Result) bool {
	subject := group[0].Key
	in, known := w.subjects[subject]
	if !listed(group) {
		if known {
			return false
		}
		w.subjects[subject] = len(w.parts)
		w.parts = append(w.parts, part{ops: group, out: out})
		return true
	}
	p := w.listFor(group)
	if known && in != p {
		return false
	}
	if p == len(w.parts) {
		w.parts = append(w.parts, part{list: &list{told: w.store.tell(group[0].Rule)}})
	}
	w.subjects[subject] = p
	w.parts[p].list.add(&group[0], out, i)
	return true
}

// listFor returns the part that a take goes to, which may be one that isn't there yet.
func (w *wave) listFor(group []ratelimit.Op) int {
	key := listKey{told: w.store.tell(group[0].Rule)}
	if w.apart {
		key.slot = group[0].Key
	}
	p, ok := w.lists[key]
	if !ok || len(w.parts[p].list.takes) >= w.store.joined {
		p = len(w.parts)
		w.lists[key] = p
	}
	return p
}

// add adds a take, which is number i of the ops.
func (l *list) add(op *ratelimit.Op, out []ratelimit.Result, i int) {
	if n := len(l.takes); n > 0 {
		if last := &l.takes[n-1]; last.to == i && last.op.Key == op.Key && last.op.N == op.N {
			last.out, last.to = last.out[:len(last.out)+1], i+1
			return
		}
	}
	l.takes = append(l.takes, takes{op: op, out: out, to: i + 1})
}

// run runs the wave. A list whose keys turned out to be in different slots has not run.
func (w *wave) run(ctx context.Context) error {
	calls := make([]redispipe.Call, len(w.parts))
	for i, p := range w.parts {
		var err error
		if calls[i], err = w.store.callOf(&p); err != nil {
			return err
		}
	}
	replies, err := w.store.pipe.RunAll(ctx, calls)
	if err != nil {
		return failure(ctx, err)
	}
	for i, reply := range replies {
		p := &w.parts[i]
		switch {
		case redis.HasErrorPrefix(reply.Err, "CROSSSLOT") && p.list != nil && !w.apart:
			err = w.again(ctx, p.list)
		case reply.Err != nil:
			err = failure(ctx, reply.Err)
		case p.list != nil:
			err = p.list.results(reply.Text, calls[i].Keys)
		default:
			err = results(reply.Ints, calls[i].Keys, p.ops, p.out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) callOf(p *part) (redispipe.Call, error) {
	if p.list != nil {
		return s.listCall(p.list), nil
	}
	return s.call(p.ops)
}

// again runs a list as one for each slot.
func (w *wave) again(ctx context.Context, l *list) error {
	split := w.store.newWave()
	for i, t := range l.takes {
		key := listKey{l.told, t.op.Key}
		p, ok := split.lists[key]
		if !ok {
			p = len(split.parts)
			split.lists[key] = p
			split.parts = append(split.parts, part{list: &list{told: l.told}})
		}
		split.parts[p].list.takes = append(split.parts[p].list.takes, l.takes[i])
	}
	return split.run(ctx)
}
