package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine is where a run took place.
type machine struct {
	CPU    string    `json:"cpu"`
	Cores  int       `json:"cores"`
	Memory string    `json:"memory"`
	Kernel string    `json:"kernel"`
	Go     string    `json:"go"`
	Date   time.Time `json:"date"`
}

func thisMachine() machine {
	return machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(), Date: time.Now().UTC().Truncate(time.Second),
	}
}

func (m machine) String() string {
	return fmt.Sprintf("%d cores of %s, %s, Linux %s, %s", m.Cores, m.CPU, m.Memory, m.Kernel, m.Go)
}

// field finds a "name: value" line.
func field(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer file.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path) // empty where there is none
	return strings.TrimSpace(string(text))
}
