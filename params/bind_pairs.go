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
	exceeded bool
	faults   Errors
}

// refuse notes a mistake about a parameter.
func (b *binder) refuse(from Source, name, detail string, cause error) {
	e := malformed(from, clip(name), detail)
	e.cause = cause
	b.faults.note(e)
}

// exceed notes that the budget isn't enough, which ends what is made of pairs.
func (b *binder) exceed(from Source, detail string, limit int) {
	b.exceeded = true
	b.faults.note(&Error{Source: from, Reason: ErrTooLarge, Detail: fmt.Sprintf(detail, limit)})
}

// pairs fills v with the parameters that have a name in it, after the first skip
// bytes of each.
func (b *binder) pairs(pp *pairPlan, v reflect.Value, pairs []pair, skip, depth int) {
	var few [16]uint32
	counts := few[:]
	if len(pp.fields) > len(few) {
		counts = make([]uint32, len(pp.fields))
	}
	var within []inBranch
	next := 0
	for at := range pairs {
		name := pairs[at].name[skip:]
		if i := pp.find(name, next); i >= 0 {
			next = i + 1
			if counts[i]++; counts[i] > 1 {
				continue
			}
			b.first(pp.from, &pp.fields[i], v, pairs[at:])
		} else if i, number, length := pp.branchOf(name); i >= 0 {
			within = append(within, inBranch{i, number, skip + length, pairs[at]})
		} else if b.options.DisallowUnknownFields && !pp.isFile(name) {
			b.refuse(pp.from, pairs[at].name, "is unknown", nil)
		}
	}
	for i := range pp.fields {
		f := &pp.fields[i]
		switch {
		case counts[i] == 0:
			b.absent(pp.from, f, v, pairs, skip)
		case counts[i] > 1 && !f.many:
			b.refuse(pp.from, nameIn(pairs, skip, f), givenTimes(int(counts[i])), nil)
		}
	}
	b.branches(pp, v, within, depth)
}

// first fills a field that is found for the first time, as that of the first of pairs.
func (b *binder) first(from Source, f *textField, v reflect.Value, pairs []pair) {
	if !f.many {
		b.set(from, f, pairs[0].name, fieldAt(v, f.index), pairs[0].value)
		return
	}
	name, count := pairs[0].name, 0
	for i := range pairs {
		if pairs[i].name == name {
			count++
		}
	}
	if !b.grow(from, count) {
		return
	}
	list := fieldAt(v, f.index)
	list.Set(reflect.MakeSlice(list.Type(), count, count))
	i := 0
	for _, p := range pairs {
		if p.name == name {
			b.set(from, f, name, list.Index(i), p.value)
			i++
		}
	}
}

// set puts a text into a value.
func (b *binder) set(from Source, f *textField, name string, v reflect.Value, text string) {
	if fault, cause := f.set(v, text); fault != "" {
		b.refuse(from, name, fault, cause)
	}
}

// absent is for a field that got nothing.
func (b *binder) absent(from Source, f *textField, v reflect.Value, pairs []pair, skip int) {
	switch {
	case f.def.IsValid():
		fieldAt(v, f.index).Set(f.def)
	case f.required:
		b.faults.note(missing(from, nameIn(pairs, skip, f)))
	}
}

// nameIn is the whole name of a field. All of pairs have the way to it in theirs.
func nameIn(pairs []pair, skip int, f *textField) string {
	if skip == 0 {
		return f.name
	}
	return pairs[0].name[:skip] + f.name
}

// grow counts elements that are going to be made, if they may.
func (b *binder) grow(from Source, n int) bool {
	if b.elements += n; b.elements > b.options.MaxElements && !b.exceeded {
		b.exceed(from, "has more than %d elements", b.options.MaxElements)
	}
	return !b.exceeded
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
func (b *binder) branches(pp *pairPlan, v reflect.Value, within []inBranch, depth int) {
	if within != nil && depth == b.options.MaxDepth && !b.exceeded {
		b.exceed(pp.from, "has names more than %d deep", depth)
	}
	if b.exceeded {
		return
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
		b.branch(&pp.branches[within[0].branch], pp.from, v, within[:n], depth)
		within = within[n:]
	}
}

// branch makes one slice of structs, or the struct behind one pointer.
func (b *binder) branch(br *branch, from Source, v reflect.Value, within []inBranch, depth int) {
	count := 1
	for i := 1; i < len(within); i++ {
		if within[i].number != within[i-1].number {
			count++
		}
	}
	if !b.grow(from, count) {
		return
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
		b.pairs(br.plan, into, pairs[begin:end], within[begin].skip, depth+1)
		begin, element = end, element+1
	}
}
