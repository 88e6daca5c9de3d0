package coord

import "time"

const (
	// MaxMetadata is how many bytes a token's metadata may have.
	MaxMetadata = 64 << 10
	// MaxName is how many bytes the name of a user, of a holder, and of who uses a token
	// may have.
	MaxName = 1 << 10
	// MinTime and MaxTime bound every duration that is asked for.
	MinTime = time.Millisecond
	MaxTime = 100 * 365 * 24 * time.Hour
)

// checkTime returns an error if a store cannot count d.
func checkTime(name string, d time.Duration) error {
	if d < MinTime || d > MaxTime {
		return invalid("%s is %v, want %v to %v", name, d, MinTime, MaxTime)
	}
	return nil
}

func checkName(what, name string) error {
	if len(name) > MaxName {
		return invalid("%s has %d bytes, want at most %d", what, len(name), MaxName)
	}
	return nil
}

func checkUser(user string) error {
	if user == "" {
		return invalid("no user")
	}
	return checkName("the user", user)
}
