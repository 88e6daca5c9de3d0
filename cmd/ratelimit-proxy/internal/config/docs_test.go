package config

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// TestDocumentedYAML checks the YAML blocks of the documentation that configure a proxy. It checks a block with
// upstreams as a complete configuration, and only the syntax of the others.
func TestDocumentedYAML(t *testing.T) {
	part := regexp.MustCompile(`(?m)^(upstreams|listen|routes|rules):`)
	for _, page := range doccheck.Pages(t, "../../../..") {
		blocks, err := doccheck.Blocks(page)
		require.NoError(t, err)
		for _, b := range blocks {
			require.NotEmpty(t, b.Lang, "%s:%d: the block needs a language", page, b.Line)
			if b.Lang != "yaml" || !part.MatchString(b.Text) {
				continue
			}
			c, err := Parse(fmt.Sprintf("%s:%d", page, b.Line), []byte(b.Text))
			if err == nil && len(c.Upstreams) > 0 {
				_, err = c.Resolve()
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}
