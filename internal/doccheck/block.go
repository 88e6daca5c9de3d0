package doccheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pages returns all pages of the documentation of a repository.
func Pages(tb testing.TB, root string) []string {
	tb.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md", "bench/*.md"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		pages = append(pages, found...)
	}
	if len(pages) < 20 {
		tb.Fatalf("doccheck: %s has only %d pages", root, len(pages))
	}
	return pages
}

// Block is a fenced block of a page.
type Block struct {
	Page string
	Line int    // the number of the first line of Text, from 1
	Lang string // the language that the fence names, or ""
	Text string // without the indentation of the fence
}

// Blocks returns the fenced blocks of a page.
func Blocks(page string) ([]Block, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var fence, indent string // of the open block
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		trimmed := strings.TrimSpace(line)
		ticks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence, indent = ticks, line[:strings.Index(line, "`")]
			lang, _, _ := strings.Cut(strings.TrimSpace(trimmed[len(ticks):]), " ")
			blocks = append(blocks, Block{Page: page, Line: number + 1, Lang: lang})
		case fence != "" && trimmed == fence:
			fence = ""
		case fence != "":
			blocks[len(blocks)-1].Text += strings.TrimPrefix(line, indent)
		}
	}
	return blocks, nil
}
