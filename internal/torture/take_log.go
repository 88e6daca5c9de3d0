package torture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// log holds the takes of one goroutine. It is written to a file when it is closed. A safe log survives when the process
// is killed, but costs time: each take is written before it is sent, and again when its reply is received.
type log struct {
	name  string
	file  *os.File // only for a safe log
	n     int64    // the number of takes
	notes []byte   // the records of a log that is not safe
}

const recordLen = 4 * 8 // sent, received, units, outcome

// The outcomes of a take.
const (
	isSent = iota
	isAllowed
	isDenied
	isFailed
)

// newLog begins the log of a goroutine of this process.
func newLog(dir string, number int, safe bool) (l *log, err error) {
	l = &log{name: filepath.Join(dir, fmt.Sprintf("%d-%d", os.Getpid(), number))}
	if safe {
		l.file, err = os.Create(l.name)
	}
	return l, err
}

// take takes n units.
func (l *log) take(n int64, take func(int64) (bool, error)) error {
	k := Take{N: n, Sent: time.Now().UnixMicro()}
	if err := l.write(k, isSent); err != nil {
		return err
	}
	ok, err := take(n)
	k.Received = time.Now().UnixMicro()
	what := uint64(isDenied)
	switch {
	case err != nil:
		what = isFailed
	case ok:
		what = isAllowed
	}
	err = l.write(k, what)
	l.n++
	return err
}

func (l *log) write(k Take, what uint64) error {
	if l.file == nil && what == isSent {
		return nil
	}
	var note [recordLen]byte
	for i, v := range [...]uint64{uint64(k.Sent), uint64(k.Received), uint64(k.N), what} {
		binary.LittleEndian.PutUint64(note[8*i:], v)
	}
	if l.file == nil {
		l.notes = append(l.notes, note[:]...)
		return nil
	}
	_, err := l.file.WriteAt(note[:], l.n*recordLen)
	return err
}

func (l *log) close() error {
	if l.file == nil {
		return os.WriteFile(l.name, l.notes, 0o600)
	}
	return l.file.Close()
}

// readLogs returns the takes of all logs and the number of their processes. A take without a reply has failed.
func readLogs(dir string) (takes []Take, processes int, err error) {
	files, err := os.ReadDir(dir)
	seen := map[string]bool{}
	for _, f := range files {
		b, e := os.ReadFile(filepath.Join(dir, f.Name()))
		err = errors.Join(err, e)
		if pid, _, _ := strings.Cut(f.Name(), "-"); len(b) > 0 {
			seen[pid] = true
		}
		for ; len(b) >= recordLen; b = b[recordLen:] {
			at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
			what := at(3)
			takes = append(takes, Take{
				Sent: at(0), Received: at(1), N: at(2),
				Allowed: what == isAllowed, Failed: what == isSent || what == isFailed,
			})
		}
	}
	return takes, len(seen), err
}
