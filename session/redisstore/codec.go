package redisstore

import (
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// mark begins the name of each of the session's fields in its hash, and of none of
// the store's own.
const mark = ":"

// commitArgs returns the arguments of the commit script, and the size of the fields that
// it sets.
func commitArgs(d storage.Delta) (args []any, size int) {
	rotate := ""
	if d.Rotate != (storage.Digest{}) {
		rotate = string(d.Rotate[:])
	}
	args = append(make([]any, 0, 10+3*len(d.Expect)+3*len(d.Changes)),
		d.Limits.Idle.Microseconds(), d.Limits.Absolute.Microseconds(), MaxBytes, bytesPerField-len(mark),
		boolArg(d.Create), string(d.Digest[:]), rotate, d.Grace.Microseconds(), d.Bind, len(d.Expect))
	for name, v := range d.Expect {
		args = append(args, mark+name, boolArg(v.Exists), string(v.Bytes))
	}
	for name, c := range d.Changes {
		switch c.Op {
		case storage.OpDelete:
			args = append(args, "d", mark+name, "")
		case storage.OpAdd:
			args = append(args, "a", mark+name, c.N)
		default:
			args = append(args, "s", mark+name, string(c.Value))
			size += len(name) + len(c.Value) + bytesPerField
		}
	}
	return args, size
}

func boolArg(b bool) int {
	if b {
		return 1
	}
	return 0
}

// commitErrors are the results of the commit script.
var commitErrors = map[int64]error{
	1:  nil,
	0:  storage.ErrGone,
	-1: storage.ErrExists,
	-2: storage.ErrTooLarge,
	-3: storage.ErrConflict,
	-4: storage.ErrNotCounter,
}

func commitError(reply []any) error {
	if len(reply) == 1 {
		if n, ok := reply[0].(int64); ok {
			if err, ok := commitErrors[n]; ok {
				return err
			}
		}
	}
	return errUnreadable
}

// Results of the remove script.
const (
	removeDone    = int64(1)
	removeMissing = int64(0)
	removeRefused = int64(-1) // another digest or user
)

func parseRemove(reply []any) (result int64, owner string, err error) {
	if len(reply) == 2 {
		result, ok1 := reply[0].(int64)
		owner, ok2 := reply[1].(string)
		if ok1 && ok2 && removeRefused <= result && result <= removeDone {
			return result, owner, nil
		}
	}
	return 0, "", errUnreadable
}

// parseRecord decodes the reply of the load script.
func parseRecord(reply []any) (rec storage.Record, err error) {
	if len(reply) == 1 && reply[0] == int64(0) {
		return rec, storage.ErrNotFound
	}
	if len(reply) != 5 {
		return rec, errUnreadable
	}
	created, ok1 := reply[0].(int64)
	touched, ok2 := reply[1].(int64)
	old, ok3 := reply[2].(int64)
	user, ok4 := reply[3].(string)
	list, ok5 := reply[4].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(list)%2 != 0 {
		return rec, errUnreadable
	}
	rec = storage.Record{Created: time.UnixMicro(created), Touched: time.UnixMicro(touched), User: user, Old: old == 1}
	if len(list) > 0 {
		rec.Fields = make(map[string][]byte, len(list)/2)
	}
	for i := 0; i < len(list); i += 2 {
		name, ok1 := list[i].(string)
		value, ok2 := list[i+1].(string)
		if !ok1 || !ok2 || name == "" || name[:1] != mark {
			return storage.Record{}, errUnreadable
		}
		rec.Fields[name[1:]] = []byte(value)
	}
	return rec, nil
}

// parseIndex decodes the reply of the index_list script.
func parseIndex(reply []any) ([]storage.Locator, error) {
	if len(reply) != 1 {
		return nil, errUnreadable
	}
	members, ok := reply[0].([]any)
	if !ok {
		return nil, errUnreadable
	}
	var locators []storage.Locator
	for _, m := range members {
		if text, ok := m.(string); ok && len(text) == len(storage.Locator{}) {
			locators = append(locators, storage.Locator([]byte(text)))
		}
	}
	return locators, nil
}
