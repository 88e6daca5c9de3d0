package redisstore

import (
	"time"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session"
)

// mark begins the name of each of the session's fields in its hash, and of none of
// the store's own.
const mark = ':'

func storedName(name string) string { return string(mark) + name }

// head returns what a script is told of a manager's limits: those of one manager are
// the same all the time.
func (s *Store) head(lim session.Limits) *redispipe.Head {
	if known := s.known.Load(); known != nil && known.limits == lim {
		return known.head
	}
	h := redispipe.NewHead(lim.Idle.Microseconds(), lim.Absolute.Microseconds(), lim.Touch.Microseconds(),
		MaxBytes, bytesPerField-1) // less the mark
	s.known.Store(&knownLimits{lim, h})
	return h
}

type knownLimits struct {
	limits session.Limits
	head   *redispipe.Head
}

// commitArgs returns the arguments of the commit script, and what the fields that
// it sets cost.
func (s *Store) commitArgs(d session.Delta) (args []any, size int) {
	create, rotate := 0, ""
	if d.Create {
		create = 1
	}
	if d.Rotate != (session.Digest{}) {
		rotate = string(d.Rotate[:])
	}
	args = append(make([]any, 0, 5+3*len(d.Changes)),
		s.head(d.Limits), create, string(d.Digest[:]), rotate, len(d.Changes))
	for name, c := range d.Changes {
		if c.Op == session.OpDelete {
			args = append(args, "d", storedName(name), "")
			continue
		}
		args = append(args, "s", storedName(name), string(c.Value))
		size += len(name) + len(c.Value) + bytesPerField
	}
	return args, size
}

// parseRecord reads what the load script returns for a session.
func parseRecord(reply []any) (session.Record, error) {
	created, ok1 := reply[0].(int64)
	list, ok2 := reply[1].([]any)
	if !ok1 || !ok2 || len(list)%2 != 0 {
		return session.Record{}, errUnreadable
	}
	fields, ok := parseFields(list)
	if !ok {
		return session.Record{}, errUnreadable
	}
	return session.Record{Fields: fields, Created: time.UnixMicro(created)}, nil
}

// parseFields makes the session's fields of name, value, …
func parseFields(list []any) (fields map[string][]byte, ok bool) {
	if len(list) > 0 {
		fields = make(map[string][]byte, len(list)/2)
	}
	for i := 0; i < len(list); i += 2 {
		name, ok1 := list[i].(string)
		value, ok2 := list[i+1].(string)
		if !ok1 || !ok2 || name == "" || name[0] != mark {
			return nil, false
		}
		fields[name[1:]] = []byte(value)
	}
	return fields, true
}
