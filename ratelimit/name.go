package ratelimit

// nameRule says what validName accepts.
const nameRule = `1 to 64 letters, digits, "-" or "_"`

// validName tells whether s can name a policy or a rule: as a part of a property's name,
// of a key in a store and of a header, without escapes in any.
func validName(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
