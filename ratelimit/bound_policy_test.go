package ratelimit

import (
	"context"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestABoundPolicyHasAllFields sets each exported field of a policy and checks that the server's copy has all of
// them.
func TestABoundPolicyHasAllFields(t *testing.T) {
	key := func(context.Context, *http.Request) (string, error) { return "", nil }
	p := &Policy{
		Name: "p", Rules: []Rule{PerMinute(1)}, Key: key, Fallback: key, Unit: "bytes", PartitionKey: true, XHeaders: true,
		RulesFor: func(context.Context, *http.Request) ([]Rule, error) { return nil, nil },
		Cost:     func(context.Context, *http.Request) (int64, error) { return 1, nil },
	}
	b := newBoundPolicy(p, nil)
	require.Same(t, p, b.of)
	require.Same(t, p.propertyKeys(), b.propertyKeys())
	original, bound := reflect.ValueOf(p).Elem(), reflect.ValueOf(&b.Policy).Elem()
	for i := range original.NumField() {
		field := original.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		require.False(t, original.Field(i).IsZero(), "the test sets no %s", field.Name)
		if field.Type.Kind() == reflect.Func {
			require.Equal(t, original.Field(i).Pointer(), bound.Field(i).Pointer(), field.Name)
		} else {
			require.Equal(t, original.Field(i).Interface(), bound.Field(i).Interface(), field.Name)
		}
	}
	p.Rules[0] = PerMinute(2)
	require.Equal(t, PerMinute(1), b.Rules[0], "a copy")
}
