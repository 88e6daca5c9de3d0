package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "github.com/ulule/limiter/v3/drivers/middleware/stdlib" // for the pages alone

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// These pages' blocks use the packages that are compared.
func TestDocumentedGo(t *testing.T) {
	pages, err := filepath.Glob("../docs/coming-from-*.md")
	require.NoError(t, err)
	doccheck.Test(t, pages...)
}
