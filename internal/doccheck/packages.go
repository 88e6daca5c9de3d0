package doccheck

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

const house = "github.com/lazyreq/lazyreq"

// hidden packages are not for users.
var hidden = regexp.MustCompile(`(^|/)internal(/|$)|^vendor/|^` + house + `/(bench|examples)/`)

// packages holds the packages that the module of the working directory can import.
type packages struct {
	paths map[string][]string // by name; lazyreq's first, then the standard library's
	names map[string]string   // by path
}

func listPackages() (*packages, error) {
	p := &packages{paths: map[string][]string{}, names: map[string]string{}}
	for _, pattern := range []string{house + "/...", "std", "all"} {
		lines, err := goList("-e", "-f", "{{.Name}} {{.ImportPath}}", pattern)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			name, path, _ := strings.Cut(line, " ")
			if p.names[path] != "" || name == "" || name == "main" {
				continue
			}
			p.names[path] = name
			if !hidden.MatchString(path) {
				p.paths[name] = append(p.paths[name], path)
			}
		}
	}
	return p, nil
}

// find returns the path of the nearest package with this name, or several paths if they are equally near.
func (p *packages) find(name string) []string {
	distance := func(path string) int {
		first, _, _ := strings.Cut(path, "/")
		switch {
		case strings.HasPrefix(path, house+"/"):
			return 0
		case !strings.Contains(first, "."):
			return 1
		}
		return 2
	}
	var found []string
	for _, path := range p.paths[name] {
		if base, ok := strings.CutSuffix(path, "/v2"); ok && p.names[base] == name {
			continue // a page that means json/v2 imports it
		}
		if len(found) == 0 || distance(path) == distance(found[0]) {
			found = append(found, path)
		}
	}
	return found
}

// newImporter returns an importer of these paths. Go builds the packages if its cache lacks them.
func newImporter(fset *token.FileSet, paths []string) (types.Importer, error) {
	lines, err := goList(append([]string{"-export", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{} // files by path
	for _, line := range lines {
		path, file, _ := strings.Cut(line, " ")
		exports[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file := exports[path]
		if file == "" {
			return nil, fmt.Errorf("the module of this test doesn't require package %s", path)
		}
		return os.Open(file)
	}), nil
}

func goList(args ...string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}
