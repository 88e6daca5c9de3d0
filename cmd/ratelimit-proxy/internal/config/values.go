package config

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// Values returns the values of the request in a key that is written as text, each in the form of
// [KeyPart.Normalize]. It returns an error if no request has the key, or if the text can be divided
// into values in several ways.
func (k Key) Values(text string) ([]string, error) {
	if len(k) == 1 {
		value, err := k[0].parse(text)
		return []string{value}, err
	}
	switch ways := k.divide(text); len(ways) {
	case 0:
		return nil, errors.New("does not have the form of the key")
	case 1:
		return ways[0], nil
	default:
		return nil, errors.New("can be divided into the values of the key in several ways: put other text between them in the key")
	}
}

// divide returns the ways to divide text into the values of the key. It stops after two.
func (k Key) divide(text string) (ways [][]string) {
	if len(k) == 0 {
		if text == "" {
			ways = [][]string{nil}
		}
		return ways
	}
	for end := 0; end <= len(text) && len(ways) < 2; end++ {
		if !k[1:].mayBegin(text[end:]) {
			continue
		}
		value, err := k[0].parse(text[:end])
		if err != nil {
			continue
		}
		for _, way := range k[1:].divide(text[end:]) {
			if k[0].Kind != "" {
				way = append([]string{value}, way...)
			}
			if !slices.ContainsFunc(ways, func(other []string) bool { return slices.Equal(way, other) }) {
				ways = append(ways, way)
			}
		}
	}
	return ways
}

// mayBegin reports whether text may begin with the key's first part.
func (k Key) mayBegin(text string) bool {
	if len(k) == 0 {
		return text == ""
	}
	return k[0].Kind != "" || strings.HasPrefix(text, k[0].Name)
}

// parse returns the value of a request that text stands for, in the form of Normalize. It returns
// an error if no request has such a value.
func (p KeyPart) parse(text string) (string, error) {
	var err error
	switch p.Kind {
	case "":
		if text != p.Name {
			err = errors.New("is not the text of the key")
		}
	case "client":
		a, err := netip.ParseAddr(text)
		if err != nil {
			return "", errors.New("is not an address")
		}
		return netaddr.Plain(a).String(), nil
	case "host":
		if !isHostWithoutPort(text) {
			err = errors.New("is not a host without a port")
		}
	case "path":
		if err = checkPath(text); err == nil && strings.Contains(text, "*") {
			err = errors.New("has a *, but is not a pattern: want a whole path")
		}
	case "method":
		err = checkMethod(text)
	case "header":
		err = checkFieldValue(text)
	case "query":
		if strings.Contains(text, "\x00") {
			err = errors.New("never matches: it contains NUL")
		}
	}
	value := p.Normalize(text)
	if err == nil && value == "" {
		err = errors.New("is empty, but no key is empty")
	}
	return value, err
}
