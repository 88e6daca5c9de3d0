package params

import (
	"net/http"
	"strings"
)

// findPath looks a name up among the route's wildcards. A wildcard that matched
// nothing has an empty value, so that no other source can replace it.
func findPath(r *http.Request, name string) (found, *Error) {
	value := r.PathValue(name)
	if value == "" && !isWildcard(r.Pattern, name) {
		return found{}, nil
	}
	if fault := textProblem(value); fault != "" {
		return found{}, malformedError(SourcePath, name, fault)
	}
	return found{from: SourcePath, count: 1, text: value}, nil
}

// isWildcard reports whether a pattern has a wildcard of that name. {$} is the end of the path.
func isWildcard(pattern, name string) bool {
	return name != "$" && (strings.Contains(pattern, "{"+name+"}") || strings.Contains(pattern, "{"+name+"...}"))
}
