package option

// NameSyntax describes what [ValidName] accepts.
const NameSyntax = `1 to 64 letters, digits, "-" or "_"`

// ValidName reports whether s can be the name of a policy or a rule: a part of a property's name, of a key in
// a store and of a header, without escapes.
func ValidName(s string) bool {
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
