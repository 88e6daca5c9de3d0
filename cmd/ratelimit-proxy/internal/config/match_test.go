package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// words returns all texts of up to n words, each after a slash.
func words(n int, of ...string) []string {
	out := []string{""}
	for begin := 0; n > 0; n-- {
		end := len(out)
		for _, before := range out[begin:end] {
			for _, w := range of {
				out = append(out, before+"/"+w)
			}
		}
		begin = end
	}
	return out
}

// A pattern covers another if and only if it matches all paths that the other one matches.
func TestPatternCovers(t *testing.T) {
	var patterns []string
	for _, p := range words(2, "a", "b", "*") {
		if patterns = append(patterns, p+"/**"); p != "" {
			patterns = append(patterns, p)
		}
	}
	paths := words(4, "a", "b", "c")
	covered := 0
	for _, wide := range append(patterns, "/") {
		for _, narrow := range append(patterns, "/") {
			want := true
			for _, path := range paths {
				path = "/" + strings.TrimPrefix(path, "/")
				want = want && (!patternMatches(narrow, path) || patternMatches(wide, path))
			}
			require.Equal(t, want, patternCovers(wide, narrow), "%s covers %s", wide, narrow)
			if want {
				covered++
			}
		}
	}
	require.Greater(t, covered, len(patterns))
}
