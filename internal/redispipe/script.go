package redispipe

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
)

// Script is a Lua script. It is immutable.
type Script struct {
	src, sha string
	ints     bool
}

// NewScript returns a script with the source src and an array as its reply. An error must be the
// whole reply: at some errors inside an array go-redis stops reading, and takes the rest of the
// array for the replies of other calls.
func NewScript(src string) *Script {
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &Script{src: src, sha: hex.EncodeToString(sum[:])}
}

// ReadScript is [NewScript] for the concatenated contents of some files. It panics if one is missing.
func ReadScript(from embed.FS, files ...string) *Script {
	var src []byte
	for _, name := range files {
		content, err := from.ReadFile(name)
		if err != nil {
			panic(err)
		}
		src = append(src, content...)
	}
	return NewScript(string(src))
}

// NewIntScript returns a script with the source src and an array of integers as its reply.
func NewIntScript(src string) *Script {
	s := NewScript(src)
	s.ints = true
	return s
}

// Source returns the script's source.
func (s *Script) Source() string { return s.src }

// Batch is a script that does the same to each of its keys, such as a take with one rule. Calls
// of one Batch, by its address, share an EVALSHA:
//
//	KEYS   the keys
//	ARGV   Args, and then for each key n and the number of equal calls; nothing if all of these
//	       are 1
//	Reply  one integer for all calls, such as the time, and then Width integers for each key
//
// The script must not raise an error if only one of the keys is wrong.
type Batch struct {
	Script *Script // made by NewIntScript
	Args   []any   // strings and numbers; they must not change
	Width  int
	Max    int  // keys in one EVALSHA, during which Redis does nothing else
	Join   bool // whether equal calls of a key are one entry
}
