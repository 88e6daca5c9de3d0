//go:build !linux

package load

import "errors"

// Run returns an error: it works on Linux only.
func Run(Options, func(i int) Conn) (Result, error) {
	return Result{}, errors.New("load: this is not Linux")
}
