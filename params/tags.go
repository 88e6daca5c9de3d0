package params

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// allSources are the sources that a field's tag can name, in the order of reading.
var allSources = []Source{SourcePath, SourceHeader, SourceCookie, SourceQuery, SourceForm, SourceJSON}

// forEachField calls add for the fields of a struct. If add reports that a field is a group, its fields count as fields of
// the outer struct.
func forEachField(t reflect.Type, index []int, add func(reflect.StructField, []int) (isGroup bool, err error)) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clip(index), i)
		isGroup, err := add(sf, at)
		switch {
		case err != nil || !isGroup:
		case hasDemands(sf.Tag):
			err = errors.New("a struct whose fields are those of the outer one can't be required, have a default or a layout, or be checked by a tag")
		default:
			err = forEachField(sf.Type, at, add)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sf.Name, err)
		}
	}
	return nil
}

// classify calls sourceOf. If a field has no source, classify reports whether it is a group. It returns an error if the
// field is neither a group nor left out.
func classify(sf reflect.StructField, only Source) (from Source, tag string, isGroup bool, err error) {
	from, tag, err = sourceOf(sf, only)
	switch {
	case err != nil:
	case from != "" && !sf.IsExported():
		return "", "", false, errors.New("is not exported")
	case from != "", isLeftOut(sf.Tag, only):
	case canBeGroup(sf):
		isGroup = true
	case sf.IsExported():
		err = fmt.Errorf(`has no tag %s; params:"-" leaves it out`, cmp.Or(only, "of a source"))
	}
	return from, tag, isGroup, err
}

// isLeftOut reports whether the tag of a field without a source leaves it out.
func isLeftOut(tag reflect.StructTag, only Source) bool {
	return tag.Get("params") == "-" || slices.ContainsFunc(allSources, func(s Source) bool {
		return (only == "" || s == only) && tag.Get(string(s)) == "-"
	})
}

func canBeGroup(sf reflect.StructField) bool {
	_, isOpt := optInnerType(sf.Type)
	return sf.Type.Kind() == reflect.Struct && (sf.IsExported() || sf.Anonymous) && sf.Type != timeType && !isOpt
}

// sourceOf returns the source that a field's tags name, or "", and the name there. If only is not "", the tags of other
// sources don't count.
func sourceOf(sf reflect.StructField, only Source) (from Source, tag string, err error) {
	for _, s := range allSources {
		t, ok := sf.Tag.Lookup(string(s))
		switch {
		case !ok || t == "-", only != "" && s != only:
		case from != "":
			return "", "", fmt.Errorf("names two sources, %s and %s", from, s)
		default:
			from, tag = s, t
		}
	}
	return from, tag, nil
}
