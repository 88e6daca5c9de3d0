package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// row is a session in the table. Times are in microseconds since 1970. now is the database's time when the row was read.
type row struct {
	redact.Hidden
	locator                                         storage.Locator
	digest, old                                     storage.Digest
	oldUntil, created, touched, bound, expires, now int64
	user, device                                    string
	remembered                                      bool
	fields                                          map[string][]byte
}

var errCorrupt = option.WithText("sqlstore: the row does not hold a session", storage.ErrCorrupt)

// scanRow reads a row of a result. It returns nil if there is no row, and [storage.ErrCorrupt] if this package has not
// written the row.
func scanRow(result interface{ Scan(...any) error }) (*row, error) {
	r := new(row)
	var locator, digest, old, user, device, fields []byte
	err := result.Scan(&locator, &digest, &old, &r.oldUntil, &r.created, &r.touched, &r.bound, &r.expires,
		&user, &r.remembered, &device, &fields, &r.now)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	complete := copy(r.locator[:], locator) == len(r.locator) && copy(r.digest[:], digest) == len(r.digest) && copy(r.old[:], old) == len(r.old)
	r.user, r.device = string(user), string(device)
	if r.fields, err = decode(fields); err != nil || !complete {
		return nil, errCorrupt
	}
	return r, nil
}

// expired reports whether the session had ended by lim when the row was read.
func (r *row) expired(lim storage.Limits) bool {
	return lim.For(r.remembered).Expired(time.UnixMicro(r.created), time.UnixMicro(r.touched), time.UnixMicro(r.now))
}

// end returns the time at which the session will end by lim if it is not used any more.
func (r *row) end(lim storage.Limits) int64 {
	lim = lim.For(r.remembered)
	return min(r.now+lim.Idle.Microseconds(), r.created+lim.Absolute.Microseconds())
}

func (r *row) record() storage.Record {
	return storage.Record{
		Fields: r.fields, Created: time.UnixMicro(r.created), Touched: time.UnixMicro(r.touched),
		User: r.user, Remembered: r.remembered, Device: r.device,
	}
}

// encode returns the names and values of fields, each after its length.
func encode(fields map[string][]byte) []byte {
	b := []byte{}
	for name, v := range fields {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	return b
}

// decode returns the fields that encode has encoded.
func decode(b []byte) (map[string][]byte, error) {
	var parts [][]byte
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, errCorrupt
		}
		b = b[size:]
		parts, b = append(parts, b[:n]), b[n:]
	}
	if len(parts)%2 == 1 {
		return nil, errCorrupt
	}
	fields := make(map[string][]byte, len(parts)/2)
	for pair := range slices.Chunk(parts, 2) {
		fields[string(pair[0])] = pair[1]
	}
	return fields, nil
}

func sizeOf(fields map[string][]byte) int {
	size := 0
	for name, v := range fields {
		size += len(name) + len(v) + bytesPerField
	}
	return size
}

// known holds the errors that the store returns unchanged.
var known = []error{
	storage.ErrNotFound, storage.ErrGone, storage.ErrExists, storage.ErrConflict, storage.ErrNotCounter,
	storage.ErrTooLarge, storage.ErrCorrupt,
}

// wrap hides the text of a driver's error, which can contain a user or a value. The error can still be unwrapped.
func wrap(ctx context.Context, action string, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case slices.ContainsFunc(known, func(e error) bool { return errors.Is(err, e) }):
		return err
	case ctx.Err() != nil:
		return option.WithText(fmt.Sprintf("sqlstore: %s: %v", action, ctx.Err()), ctx.Err(), err)
	}
	return option.WithText(fmt.Sprintf("sqlstore: %s: database error %T%s", action, err, code(err)), err)
}

// code returns the error code of a driver's error, or "".
func code(err error) string {
	var state interface{ SQLState() string } // an error of PostgreSQL
	var number interface{ Code() int }       // an error of SQLite
	switch {
	case errors.As(err, &state):
		return " with SQLSTATE " + state.SQLState()
	case errors.As(err, &number):
		return fmt.Sprintf(" with code %d", number.Code())
	}
	return ""
}
