//go:build !linux

package demo

import "syscall"

// processAttributes keeps the terminal's ctrl-C away from the services, which
// the demo stops itself.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
