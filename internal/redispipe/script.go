package redispipe

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script. It is immutable.
type Script struct{ src, sha string }

// NewScript returns the script with this source.
func NewScript(src string) *Script {
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &Script{src: src, sha: hex.EncodeToString(sum[:])}
}

// Hash returns the name by which Redis knows the script.
func (s *Script) Hash() string { return s.sha }

// Source returns the script itself.
func (s *Script) Source() string { return s.src }
