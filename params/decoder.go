package params

import (
	"reflect"
	"strconv"
	"time"
)

// A decoder reads a JSON text into a value, checking it as a scanner does on the way,
// in one pass. It collects mistakes about values and ends at those about the text.
type decoder struct {
	scanner
	faults Errors
}

// decodeDocument reads a JSON text into v as c says. ok is false if the text is empty.
func decodeDocument(data []byte, o *Options, c *codec, v reflect.Value) (ok bool, err error) {
	var few [8]step
	d := &decoder{scanner: scanner{data: data, options: o, path: few[:0]}}
	start, err := d.begin()
	if err != nil || start == len(data) {
		return false, err
	}
	switch err := d.into(c, v); {
	case err == errEnough:
		return true, d.faults
	case err != nil:
		return true, err
	}
	if err := d.finish(); err != nil {
		return true, err
	}
	return true, d.faults.err()
}

// into reads the value at the current position into v.
func (d *decoder) into(c *codec, v reflect.Value) error {
	if d.peek() != 'n' {
		return c.decode(d, v)
	}
	if err := d.literal("null"); err != nil {
		return err
	}
	return c.setNull(d, v)
}

// refuse collects a mistake about the value at the current place.
func (d *decoder) refuse(detail string, cause error) error {
	return d.faults.add(d.at(&Error{Source: SourceJSON, Reason: ErrMalformed, Detail: detail, cause: cause}))
}

// mismatch skips a value of another type than is wanted.
func (d *decoder) mismatch(want string) error {
	raw, err := d.skip()
	if err != nil {
		return err
	}
	return d.refuse(want+butIs(raw), nil)
}

// skip goes over a value and returns it as written.
func (d *decoder) skip() ([]byte, error) {
	start := d.pos
	err := d.value()
	return d.data[start:d.pos], err
}

func decodeString(d *decoder, v reflect.Value) error {
	if d.peek() != '"' {
		return d.mismatch("must be a string")
	}
	raw, err := d.text()
	if err == nil {
		v.SetString(string(unquote(raw)))
	}
	return err
}

func decodeBool(d *decoder, v reflect.Value) error {
	switch d.peek() {
	case 't':
		v.SetBool(true)
		return d.literal("true")
	case 'f':
		v.SetBool(false)
		return d.literal("false")
	}
	return d.mismatch("must be true or false")
}

// numeral reads a number. ok is false if there is another value, which is skipped.
func (d *decoder) numeral(want string) (text []byte, ok bool, err error) {
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, false, d.mismatch(want)
	}
	start := d.pos
	err = d.number()
	return d.data[start:d.pos], err == nil, err
}

func decodeInt(d *decoder, v reflect.Value) error {
	text, ok, err := d.numeral("must be a whole number")
	if !ok {
		return err
	}
	n, err := strconv.ParseInt(string(text), 10, v.Type().Bits())
	if err != nil {
		return d.refuse("must be a whole number in range", nil)
	}
	v.SetInt(n)
	return nil
}

func decodeUint(d *decoder, v reflect.Value) error {
	text, ok, err := d.numeral("must be a whole number")
	if !ok {
		return err
	}
	n, err := strconv.ParseUint(string(text), 10, v.Type().Bits())
	if err != nil {
		return d.refuse("must be a whole number in range", nil)
	}
	v.SetUint(n)
	return nil
}

func decodeFloat(d *decoder, v reflect.Value) error {
	text, ok, err := d.numeral("must be a number")
	if !ok {
		return err
	}
	x, err := strconv.ParseFloat(string(text), v.Type().Bits())
	if err != nil {
		return d.refuse("is out of range", nil)
	}
	v.SetFloat(x)
	return nil
}

func decodeTime(d *decoder, v reflect.Value) error {
	if d.peek() != '"' {
		return d.mismatch("must be a string")
	}
	raw, err := d.text()
	if err != nil {
		return err
	}
	t, fault := parseTime(string(unquote(raw)))
	if fault != "" {
		return d.refuse(fault, nil)
	}
	*v.Addr().Interface().(*time.Time) = t
	return nil
}
