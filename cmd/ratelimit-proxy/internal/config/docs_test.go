package config

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// TestDocumentedYAML fails if a YAML block of the documentation is part of a proxy's configuration and has an
// error. A block with upstreams is a complete configuration.
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
