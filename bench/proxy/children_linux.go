package proxy

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// childPIDs returns the process ids of a process's children. It returns an error if there are none.
func childPIDs(pid int) (pids []int, err error) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return nil, err
	}
	for field := range strings.FieldsSeq(string(list)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, n)
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("process %d has no children", pid)
	}
	return pids, nil
}
