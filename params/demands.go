package params

import (
	"errors"
	"fmt"
	"reflect"
)

// demands are what the tags of a field demand of its value.
type demands struct {
	required bool          // it must be given
	def      reflect.Value // replaces a value that is not given; the zero Value for none
	checks   []check       // of a value that is given
}

// demandsOf returns the demands of a field. All values that get the default share it, so it has nothing
// in it that can be changed.
func demandsOf(sf reflect.StructField) (d demands, err error) {
	word, required := sf.Tag.Lookup("required")
	if d.required = required; required && word != "true" && word != "nonempty" {
		return d, fmt.Errorf("has the tag required with %q, want true or nonempty", word)
	}
	switch text, ok := sf.Tag.Lookup("default"); {
	case !ok:
	case required:
		return d, errors.New("a required field needs no default")
	case sf.Type.Kind() == reflect.Pointer:
		return d, fmt.Errorf("a %v can't have a default", sf.Type)
	default:
		if d.def, err = parseTag(sf.Type, "default", text); err != nil {
			return d, err
		}
	}
	if hasChecks(sf.Tag) { // targetOf does not end for a type like *P of the type P *P
		d.checks, err = compileChecks(targetOf(sf.Type), sf.Tag)
	}
	return d, err
}

// refuseDemands returns an error if a field, which is only a group of others, has demands.
func refuseDemands(sf reflect.StructField) error {
	_, required := sf.Tag.Lookup("required")
	if _, def := sf.Tag.Lookup("default"); required || def || hasChecks(sf.Tag) {
		return errors.New("a struct whose fields are those of the outer one can't be required, have a default or be checked by a tag")
	}
	return nil
}

// parseTag returns the value of type t that a tag gives as a text.
func parseTag(t reflect.Type, tag, text string) (reflect.Value, error) {
	set, err := setterOf(t)
	if err != nil {
		return reflect.Value{}, err
	}
	v := reflect.New(t).Elem()
	if fault, cause := set(v, text); fault != "" {
		return reflect.Value{}, errors.Join(fmt.Errorf("the %s %q %s", tag, text, fault), cause)
	}
	return v, nil
}

// any reports whether there are demands.
func (d *demands) any() bool { return d.required || d.def.IsValid() || d.checks != nil }

// failedBy returns the first check that v fails, or nil. v was given and is not null.
func (d *demands) failedBy(v reflect.Value) *check {
	if d.checks == nil {
		return nil
	}
	v = target(v)
	for i := range d.checks {
		if c := &d.checks[i]; !c.ok(v) {
			return c
		}
	}
	return nil
}
