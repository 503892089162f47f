package main

import "syscall"

// dieTogether has a process end if this one is killed.
func dieTogether(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
