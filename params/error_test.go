package params

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProblemOfAParameter(t *testing.T) {
	_, err := paramsOf(t, getRequest("page=x"), Options{}).Int("page")
	var problem interface {
		Problem() (int, map[string]any)
	}
	require.True(t, errors.As(fmt.Errorf("handler: %w", err), &problem))
	status, members := problem.Problem()
	require.Equal(t, 400, status)
	doc := value(json.Marshal(members))
	require.JSONEq(t, `{
		"detail": "query parameter \"page\" must be a whole number",
		"errors": [{"parameter": "page", "source": "query", "detail": "must be a whole number"}]
	}`, string(doc))
}

func TestProblemsWithoutASource(t *testing.T) {
	missing := requireReason(t, failure(paramsOf(t, getRequest(""), Options{}).Int("page")), ErrMissing, "")
	malformed := requireReason(t, failure(paramsOf(t, postJSON("{"), Options{}).Int("page")), ErrMalformed, "")
	for e, want := range map[*Error]map[string]any{
		missing:   {"detail": `parameter "page" is missing`, "errors": []map[string]string{{"parameter": "page", "detail": "is missing"}}},
		malformed: {"detail": "the request body is JSON that ends too early, at byte 1"},
	} {
		status, members := e.Problem()
		require.Equal(t, 400, status)
		require.Equal(t, want, members)
	}
}

func TestNamesFromTheClientAreClipped(t *testing.T) {
	require.Equal(t, "name", shorten("name"))
	require.Equal(t, "a\uFFFDb", shorten("a\xffb"))
	long := shorten(strings.Repeat("é", 100) + "x")
	require.Equal(t, strings.Repeat("é", 32)+"…", long)
	require.Equal(t, "x"+strings.Repeat("é", 31)+"…", shorten("x"+strings.Repeat("é", 100)), "cut between characters")

	_, err := paramsOf(t, getRequest(strings.Repeat("n", 5000)+"=%zz"), Options{}).Int("page")
	require.Less(t, len(err.Error()), 250)
	_, err = paramsOf(t, post("/", strings.Repeat("n", 5000)+"/x", "x"), Options{}).Int("page")
	require.Less(t, len(err.Error()), 250)
}
