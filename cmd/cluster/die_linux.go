package main

import "syscall"

// dieTogether makes a process end when this one is killed.
func dieTogether(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
