package params

import (
	"fmt"
	"reflect"
	"slices"
)

// A binder fills one struct from one request.
type binder struct {
	options  *Options
	elements int // made so far
	faults   Errors
}

// refuse collects a mistake about a parameter.
func (b *binder) refuse(from Source, name, detail string, cause error) error {
	e := malformed(from, clip(name), detail)
	e.cause = cause
	return b.faults.add(e)
}

// pairs fills v with the parameters that have a name in it, after the first skip
// bytes of each.
func (b *binder) pairs(pp *pairPlan, v reflect.Value, pairs []pair, skip, depth int) error {
	var few [16]tally
	tallies := few[:]
	if len(pp.fields) > len(few) {
		tallies = make([]tally, len(pp.fields))
	}
	var within []inBranch
	next := 0
	for at := range pairs {
		name := pairs[at].name[skip:]
		if i := pp.find(name, next); i >= 0 {
			if tallies[i].count++; tallies[i].count == 1 {
				tallies[i].first = at
			}
			next = i + 1
		} else if i, number, length := pp.branchOf(name); i >= 0 {
			within = append(within, inBranch{i, number, skip + length, pairs[at]})
		} else if b.options.DisallowUnknownFields && !pp.isFile(name) {
			if err := b.refuse(pp.from, pairs[at].name, "is unknown", nil); err != nil {
				return err
			}
		}
	}
	for i := range pp.fields {
		if err := b.field(pp, &pp.fields[i], v, pairs, skip, tallies[i]); err != nil {
			return err
		}
	}
	return b.branches(pp, v, within, depth)
}

// A tally is how often a parameter was given, and where first.
type tally struct{ count, first int }

// field fills one field.
func (b *binder) field(pp *pairPlan, f *textField, v reflect.Value, pairs []pair, skip int, t tally) error {
	switch {
	case t.count == 0:
		return b.absent(pp.from, f, v, pairs, skip)
	case !f.many && t.count > 1:
		return b.refuse(pp.from, pairs[t.first].name, givenTimes(t.count), nil)
	case !f.many:
		return b.set(pp.from, f, pairs[t.first].name, fieldAt(v, f.index), pairs[t.first].value)
	}
	if err := b.grow(pp.from, t.count); err != nil {
		return err
	}
	name := pairs[t.first].name
	list := fieldAt(v, f.index)
	list.Set(reflect.MakeSlice(list.Type(), t.count, t.count))
	i := 0
	for _, p := range pairs[t.first:] {
		if p.name != name {
			continue
		}
		if err := b.set(pp.from, f, name, list.Index(i), p.value); err != nil {
			return err
		}
		i++
	}
	return nil
}

// set puts a text into a value.
func (b *binder) set(from Source, f *textField, name string, v reflect.Value, text string) error {
	if fault, cause := f.set(v, text); fault != "" {
		return b.refuse(from, name, fault, cause)
	}
	return nil
}

// absent is for a field that got nothing.
func (b *binder) absent(from Source, f *textField, v reflect.Value, pairs []pair, skip int) error {
	switch {
	case f.def.IsValid():
		fieldAt(v, f.index).Set(f.def)
	case f.required:
		name := f.name
		if skip > 0 { // every pair has the way to here in its name
			name = pairs[0].name[:skip] + name
		}
		return b.faults.add(missing(from, name))
	}
	return nil
}

// grow counts elements that are going to be made.
func (b *binder) grow(from Source, n int) error {
	if b.elements += n; b.elements <= b.options.MaxElements {
		return nil
	}
	err := b.faults.add(&Error{Source: from, Reason: ErrTooLarge, Detail: fmt.Sprintf("has more than %d elements", b.options.MaxElements)})
	if err == nil {
		err = errEnough
	}
	return err
}

// inBranch is a parameter of something in a branch.
type inBranch struct {
	branch, number int
	skip           int
	pair           pair
}

// branches makes what is in the branches. The numbers of elements order them and say
// which parameters belong together; gaps are closed, so that a large number makes no
// long slice.
func (b *binder) branches(pp *pairPlan, v reflect.Value, within []inBranch, depth int) error {
	if within == nil {
		return nil
	}
	if depth == b.options.MaxDepth {
		err := b.faults.add(&Error{Source: pp.from, Reason: ErrTooLarge, Detail: fmt.Sprintf("has names more than %d deep", depth)})
		if err == nil {
			err = errEnough
		}
		return err
	}
	slices.SortStableFunc(within, func(x, y inBranch) int {
		if x.branch != y.branch {
			return x.branch - y.branch
		}
		return x.number - y.number
	})
	for len(within) > 0 {
		n := 1
		for n < len(within) && within[n].branch == within[0].branch {
			n++
		}
		if err := b.branch(&pp.branches[within[0].branch], pp.from, v, within[:n], depth); err != nil {
			return err
		}
		within = within[n:]
	}
	return nil
}

// branch makes one slice of structs, or the struct behind one pointer.
func (b *binder) branch(br *branch, from Source, v reflect.Value, within []inBranch, depth int) error {
	count := 1
	for i := 1; i < len(within); i++ {
		if within[i].number != within[i-1].number {
			count++
		}
	}
	if err := b.grow(from, count); err != nil {
		return err
	}
	to := fieldAt(v, br.index)
	if br.many {
		to.Set(reflect.MakeSlice(to.Type(), count, count))
	} else {
		to.Set(reflect.New(to.Type().Elem()))
	}
	pairs := make([]pair, len(within))
	for i := range within {
		pairs[i] = within[i].pair
	}
	begin, element := 0, 0
	for end := 1; end <= len(within); end++ {
		if end < len(within) && within[end].number == within[begin].number {
			continue
		}
		into := to
		if br.many {
			into = to.Index(element)
		} else {
			into = to.Elem()
		}
		if err := b.pairs(br.plan, into, pairs[begin:end], within[begin].skip, depth+1); err != nil {
			return err
		}
		begin, element = end, element+1
	}
	return nil
}
