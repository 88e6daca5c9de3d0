package errtext_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/errtext"
)

func TestNewWrapsAll(t *testing.T) {
	err := errtext.New("text", io.EOF, errors.ErrUnsupported)
	require.EqualError(t, err, "text")
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestPrefixLeavesOutThePackage(t *testing.T) {
	inner := errors.New("inner: wrong")
	err := errtext.Prefix("outer: Options: ", "inner", inner)
	require.EqualError(t, err, "outer: Options: wrong")
	require.ErrorIs(t, err, inner)
	require.EqualError(t, errtext.Prefix("outer: ", "inner", io.EOF), "outer: EOF")
}
