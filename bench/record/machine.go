package record

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine describes the machine of a run and the versions of its programs. Those that it
// lacks are empty.
type Machine struct {
	OS        string `json:"os"`
	Kernel    string `json:"kernel"`
	Processor string `json:"processor"`
	CPUs      int    `json:"cpus"`
	Memory    string `json:"memory"`
	Go        string `json:"go"`
	Redis     string `json:"redis"`
	Node      string `json:"node"`
	Nginx     string `json:"nginx"`
}

func thisMachine() Machine {
	return Machine{
		OS:        runtime.GOOS + "/" + runtime.GOARCH,
		Kernel:    output("uname", "-r"),
		Processor: field("/proc/cpuinfo", "model name"),
		CPUs:      runtime.NumCPU(),
		Memory:    field("/proc/meminfo", "MemTotal"),
		Go:        runtime.Version(),
		Redis:     redisVersion(),
		Node:      output("node", "--version"),
		Nginx:     nginxVersion(),
	}
}

// currentCommit returns the commit that is checked out, with "+" if the code differs from
// it.
func currentCommit() string {
	hash := output("git", "rev-parse", "--short=12", "HEAD")
	if hash != "" && output("git", "status", "--porcelain", "--", "..", ":!results", ":!../docs") != "" {
		hash += "+"
	}
	return hash
}

func redisVersion() string {
	for word := range strings.FieldsSeq(output("redis-server", "--version")) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			return v
		}
	}
	return ""
}

// nginxVersion asks nginx, which prints it on standard error.
func nginxVersion() string {
	cmd := exec.Command("nginx", "-v")
	if cmd.Err != nil {
		cmd = exec.Command("/usr/sbin/nginx", "-v") // which is not in every user's PATH
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return ""
	}
	_, v, _ := strings.Cut(string(bytes.TrimSpace(out)), "nginx/")
	return v
}

// output returns what a command prints, "" if it cannot be had.
func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(out))
}

// field returns the first value of that name in a file of /proc, "" if there is none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
