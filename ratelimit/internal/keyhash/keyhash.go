// Package keyhash hashes values that a rate limit counts by, such as credentials.
package keyhash

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// Parts returns a hash of parts. Different lists of parts are different inputs of the hash.
func Parts(parts ...string) string {
	b := make([]byte, 0, 256)
	for _, p := range parts {
		b = appendPart(b, p)
	}
	return hash128(b)
}

// Header returns a hash of a header with its canonical name. The scheme of an Authorization header
// counts in lower case, and the spaces and tabs after it as one space.
func Header(name, value string) string {
	b := appendPart(appendPart(make([]byte, 0, 256), "header"), name)
	if name == "Authorization" {
		return hash128(appendCredentials(b, value))
	}
	return hash128(appendPart(b, value))
}

func appendCredentials(b []byte, credentials string) []byte {
	scheme, rest := credentials, ""
	if i := strings.IndexAny(credentials, " \t"); i >= 0 {
		scheme, rest = credentials[:i], strings.TrimLeft(credentials[i:], " \t")
	}
	b = binary.BigEndian.AppendUint64(b, uint64(len(scheme)+1+len(rest)))
	for _, c := range []byte(scheme) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return append(append(b, ' '), rest...)
}

func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

// hash128 returns 128 bits of SHA-256.
func hash128(b []byte) string {
	sum := sha256.Sum256(b)
	const prefix = "sha256-"
	var text [len(prefix) + 22]byte
	copy(text[:], prefix)
	base64.RawURLEncoding.Encode(text[len(prefix):], sum[:16])
	return string(text[:])
}
