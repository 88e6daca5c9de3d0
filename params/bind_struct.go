package params

import (
	"reflect"
	"slices"
	"strconv"
)

// An element is a struct that parameters are for, and these without what is before them
// in their names.
type element struct {
	number int // in a slice
	pairs  []pair
}

// bindStructs fills a field that is a struct, a pointer to one, or a slice of them. Numbers
// only order the elements and bring parameters together: gaps are closed, so that a large
// number makes no long slice.
func (b *binder) bindStructs(f *field, v reflect.Value, pairs []pair, prefix string, depth int) error {
	var elements []element
	for _, p := range pairs {
		number, rest, ok := f.match(p.name)
		if !ok {
			continue
		}
		i, ok := slices.BinarySearchFunc(elements, number, func(e element, n int) int { return e.number - n })
		if !ok {
			elements = slices.Insert(elements, i, element{number: number})
		}
		elements[i].pairs = append(elements[i].pairs, pair{rest, p.value})
	}
	to := fieldAt(v, f.index)
	prefix += f.prefix
	if to.Kind() == reflect.Struct { // it is there even if nothing is for it
		return b.bindFields(*f.inner, to, slices.Concat(elements, []element{{}})[0].pairs, prefix, depth+1)
	}
	if len(elements) == 0 || !b.countElements(f.from, len(elements)) {
		return nil
	}
	if !f.many {
		to.Set(reflect.New(to.Type().Elem()))
		return b.bindFields(*f.inner, to.Elem(), elements[0].pairs, prefix, depth+1)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(elements), len(elements)))
	for i, e := range elements {
		if err := b.bindFields(*f.inner, to.Index(i), e.pairs, prefix+strconv.Itoa(e.number)+".", depth+1); err != nil {
			return err
		}
	}
	return nil
}
