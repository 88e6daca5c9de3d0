package redisstore

import (
	"strings"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session/storage"
)

// mark is the prefix of the session's fields in its hash. The names of the store's own fields do not begin with it.
const mark = ":"

// commitArgs returns the arguments of the commit script, and the size of the fields that the script sets. go-redis sends
// a bool as 1 or 0.
func commitArgs(d storage.Delta) (args []any, size int) {
	rotate := ""
	if d.Rotate != (storage.Digest{}) {
		rotate = string(d.Rotate[:])
	}
	args = append(make([]any, 0, 13+3*len(d.Expect)+3*len(d.Changes)),
		d.Limits.Idle.Microseconds(), d.Limits.Absolute.Microseconds(), MaxBytes, bytesPerField-len(mark),
		d.Create, string(d.Digest[:]), rotate, d.Grace.Microseconds(), d.Bind,
		d.Limits.Remembered.Microseconds(), d.Remember, d.Limits.Device, len(d.Expect))
	for name, v := range d.Expect {
		args = append(args, mark+name, v.Exists, string(v.Bytes))
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

// commitErrors maps results of the commit script to errors.
var commitErrors = map[int64]error{
	1:  nil,
	0:  storage.ErrGone,
	-1: storage.ErrExists,
	-2: storage.ErrTooLarge,
	-3: storage.ErrConflict,
	-4: storage.ErrNotCounter,
}

func decodeCommit(r redispipe.Reader, err error) error {
	if err != nil {
		return err
	}
	if err, known := commitErrors[r.Int()]; known && r.Done() {
		return err
	}
	return errUnreadable
}

// These are the results of the remove script.
const (
	removed        = int64(1)
	removeNotFound = int64(0)
	removeRefused  = int64(-1) // the session has another digest or user
)

func decodeRemove(r redispipe.Reader, err error) (result int64, owner string, _ error) {
	if err != nil {
		return 0, "", err
	}
	result, owner = r.Int(), r.Text()
	if !r.Done() || result < removeRefused || result > removed {
		return 0, "", errUnreadable
	}
	return result, owner, nil
}

func decodeRecord(r redispipe.Reader, err error) (rec storage.Record, _ error) {
	if err != nil {
		return rec, err
	}
	rec.Created = r.Time()
	if rec.Created.IsZero() && r.Done() {
		return rec, storage.ErrNotFound
	}
	touched, flags := r.Time(), r.Int()
	rec.Touched, rec.Old, rec.Remembered, rec.User = touched, flags&1 != 0, flags&2 != 0, r.Text()
	fields := r.Array()
	if n := fields.Len(); n > 0 {
		rec.Fields = make(map[string][]byte, n/2)
	}
	marked := true
	for fields.Len() > 0 {
		name, ok := strings.CutPrefix(fields.Text(), mark)
		rec.Fields[name], marked = []byte(fields.Text()), marked && ok
	}
	if r.Len() > 0 {
		rec.Device = r.Text()
	}
	if !marked || !fields.Done() || !r.Done() {
		return storage.Record{}, errUnreadable
	}
	return rec, nil
}

// decodeIndex decodes the reply of the index_list script.
func decodeIndex(r redispipe.Reader, err error) (locators []storage.Locator, _ error) {
	if err != nil {
		return nil, err
	}
	members := r.Array()
	for members.Len() > 0 {
		if text := members.Text(); len(text) == len(storage.Locator{}) {
			locators = append(locators, storage.Locator([]byte(text)))
		}
	}
	if !members.Done() || !r.Done() {
		return nil, errUnreadable
	}
	return locators, nil
}
