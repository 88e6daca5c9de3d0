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

func TestProblemOfAMissingParameter(t *testing.T) {
	status, members := requireReason(t, failure(paramsOf(t, getRequest(""), Options{}).Int("page")), ErrMissing, "").Problem()
	require.Equal(t, 400, status)
	require.Equal(t, map[string]any{
		"detail": `parameter "page" is missing`,
		"errors": []map[string]string{{"parameter": "page", "detail": "is missing"}},
	}, members)
}

func TestProblemOfAWholeSource(t *testing.T) {
	_, err := paramsOf(t, postJSON("{"), Options{}).Int("page")
	_, members := requireReason(t, err, ErrMalformed, "").Problem()
	require.Equal(t, map[string]any{"detail": "the request body is JSON that ends too early, at byte 1"}, members)
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
