package redisstore

import (
	"time"

	"github.com/lazyreq/lazyreq/session"
)

// mark begins the name of each of the session's fields in its hash, and of none of
// the store's own.
const mark = ':'

func storedName(name string) string { return string(mark) + name }

// commitArgs returns the arguments of the commit script, and what the fields that
// it sets cost.
func commitArgs(d session.Delta) (args []any, size int) {
	create, rotate := 0, ""
	if d.Create {
		create = 1
	}
	if d.Rotate != (session.Digest{}) {
		rotate = string(d.Rotate[:])
	}
	args = append(make([]any, 0, 7+3*len(d.Changes)),
		create, string(d.Digest[:]), rotate, d.Limits.Idle.Microseconds(), d.Limits.Absolute.Microseconds(),
		MaxBytes, bytesPerField-1) // less the mark
	for name, c := range d.Changes {
		if c.Op == session.OpDelete {
			args = append(args, "d", storedName(name))
			continue
		}
		args = append(args, "s", storedName(name), string(c.Value))
		size += len(name) + len(c.Value) + bytesPerField
	}
	return args, size
}

// parseRecord reads what the load script returns for a session.
func parseRecord(reply any) (session.Record, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return session.Record{}, errUnreadable
	}
	created, ok1 := parts[0].(int64)
	hash, ok2 := parts[1].([]any)
	if !ok1 || !ok2 || len(hash)%2 != 0 {
		return session.Record{}, errUnreadable
	}
	fields, ok := parseFields(hash)
	if !ok {
		return session.Record{}, errUnreadable
	}
	return session.Record{Fields: fields, Created: time.UnixMicro(created)}, nil
}

// parseFields picks the session's fields out of its hash, as name, value, …
func parseFields(hash []any) (fields map[string][]byte, ok bool) {
	for i := 0; i < len(hash); i += 2 {
		name, ok1 := hash[i].(string)
		value, ok2 := hash[i+1].(string)
		if !ok1 || !ok2 {
			return nil, false
		}
		if name == "" || name[0] != mark {
			continue
		}
		if fields == nil {
			fields = make(map[string][]byte, len(hash)/2)
		}
		fields[name[1:]] = []byte(value)
	}
	return fields, true
}
