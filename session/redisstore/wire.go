package redisstore

import (
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// mark begins the name of each of the session's fields in its hash, and of none of
// the store's own.
const mark = ':'

func storedName(name string) string { return string(mark) + name }

// commitArgs returns the arguments of the commit script, and what the fields that
// it sets cost.
func commitArgs(d storage.Delta) (args []any, size int) {
	rotate := ""
	if d.Rotate != (storage.Digest{}) {
		rotate = string(d.Rotate[:])
	}
	args = append(make([]any, 0, 10+3*len(d.Expect)+3*len(d.Changes)),
		d.Limits.Idle.Microseconds(), d.Limits.Absolute.Microseconds(), MaxBytes, bytesPerField-1, // less the mark
		bit(d.Create), string(d.Digest[:]), rotate, d.Grace.Microseconds(), d.Bind, len(d.Expect))
	for name, v := range d.Expect {
		args = append(args, storedName(name), bit(v.Exists), string(v.Bytes))
	}
	for name, c := range d.Changes {
		switch c.Op {
		case storage.OpDelete:
			args = append(args, "d", storedName(name), "")
		case storage.OpAdd:
			args = append(args, "a", storedName(name), c.N)
		default:
			args = append(args, "s", storedName(name), string(c.Value))
			size += len(name) + len(c.Value) + bytesPerField
		}
	}
	return args, size
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// number returns the number that a reply consists of; one that no script returns, if it
// is something else.
func number(reply []any) int64 {
	if len(reply) == 1 {
		if n, ok := reply[0].(int64); ok {
			return n
		}
	}
	return -1 << 63
}

// parseRecord reads the reply of the load script.
func parseRecord(reply []any) (storage.Record, error) {
	if number(reply) == notFound {
		return storage.Record{}, storage.ErrNotFound
	}
	if len(reply) != 5 {
		return storage.Record{}, errUnreadable
	}
	created, ok1 := reply[0].(int64)
	touched, ok2 := reply[1].(int64)
	old, ok3 := reply[2].(int64)
	user, ok4 := reply[3].(string)
	list, ok5 := reply[4].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(list)%2 != 0 {
		return storage.Record{}, errUnreadable
	}
	fields, ok := parseFields(list)
	if !ok {
		return storage.Record{}, errUnreadable
	}
	return storage.Record{
		Fields: fields, Created: time.UnixMicro(created), Touched: time.UnixMicro(touched),
		User: user, Old: old == 1,
	}, nil
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
