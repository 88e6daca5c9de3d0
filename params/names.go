package params

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A nameSet holds the names of one JSON object. The zero value is empty; few
// names cost no allocation.
type nameSet struct {
	count int
	few   [16][]byte
	// Of many names, all as they are, and all folded.
	exact, folded map[string]struct{}
}

// add adds a name and reports whether it was there: the same, or one that is
// similar, differing in letter case only.
func (n *nameSet) add(name []byte) (same, similar bool) {
	if n.count < len(n.few) {
		for _, other := range n.few[:n.count] {
			if beginApart(name, other) || !bytes.EqualFold(name, other) {
				continue
			}
			if bytes.Equal(name, other) {
				return true, false
			}
			similar = true
		}
		n.few[n.count] = name
		n.count++
		return false, similar
	}
	if n.exact == nil {
		n.exact, n.folded = map[string]struct{}{}, map[string]struct{}{}
		for _, other := range n.few {
			n.insert(other)
		}
	}
	if _, same := n.exact[string(name)]; same {
		return true, false
	}
	n.count++
	return false, n.insert(name)
}

// beginApart reports whether the first letters alone tell two names apart, as
// they mostly do. Two ASCII letters are similar only if they differ in one bit.
func beginApart(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && a[0]|b[0] < utf8.RuneSelf && (a[0]^b[0])&^0x20 != 0
}

// insert adds a new name to the maps.
func (n *nameSet) insert(name []byte) (similar bool) {
	fold := foldName(name)
	_, similar = n.folded[fold]
	n.exact[string(name)] = struct{}{}
	n.folded[fold] = struct{}{}
	return similar
}

// foldName returns the same text for all names that bytes.EqualFold calls equal.
func foldName(name []byte) string {
	folded := make([]byte, 0, len(name))
	for len(name) > 0 {
		r, size := utf8.DecodeRune(name)
		name = name[size:]
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		folded = utf8.AppendRune(folded, least)
	}
	return string(folded)
}
