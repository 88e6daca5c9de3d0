package params

import (
	"net/http"
	"strings"
)

// findPath looks a name up among the route's wildcards. A wildcard that matched
// nothing has an empty value, so that no other source can replace it.
func (p *Params) findPath(r *http.Request, name string) (found, *Error) {
	value := r.PathValue(name)
	if value == "" && !isWildcard(r.Pattern, name) {
		ask, ok := p.budgets.forRequest(r).PathValue, false
		if ask != nil {
			value, ok = ask(r, name)
		}
		if !ok {
			return found{}, nil
		}
	}
	if fault := textProblem(value); fault != "" {
		return found{}, malformedError(SourcePath, name, fault)
	}
	return found{from: SourcePath, count: 1, text: value}, nil
}

func isWildcard(pattern, name string) bool {
	if name == "$" {
		return false // {$} is the end of the path
	}
	for {
		_, rest, ok := strings.Cut(pattern, "{")
		if !ok {
			return false
		}
		wildcard, after, _ := strings.Cut(rest, "}")
		if strings.TrimSuffix(wildcard, "...") == name {
			return true
		}
		pattern = after
	}
}
