package demo

import "syscall"

// processAttributes keeps the terminal's ctrl-C away from the services, which
// the demo stops itself, and has the kernel end them should the demo be killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
