package option_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/option"
)

func TestWithTextWrapsAll(t *testing.T) {
	err := option.WithText("text", io.EOF, errors.ErrUnsupported)
	require.EqualError(t, err, "text")
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestPrefixLeavesOutThePackage(t *testing.T) {
	inner := errors.New("inner: wrong")
	err := option.Prefix("outer: Options: ", "inner", inner)
	require.EqualError(t, err, "outer: Options: wrong")
	require.ErrorIs(t, err, inner)
	require.EqualError(t, option.Prefix("outer: ", "inner", io.EOF), "outer: EOF")
}
