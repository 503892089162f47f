package sandbox

import "golang.org/x/sys/unix"

// oldModes lists calls that only amd64 has.
var oldModes = []moded{
	{call: unix.SYS_CHMOD, mode: 1}, {call: unix.SYS_MKDIR, mode: 1}, {call: unix.SYS_MKNOD, mode: 1},
	{call: unix.SYS_CREAT, mode: 1},
	{call: unix.SYS_OPEN, mode: 2, flags: 1},
}

var oldNamed = []uint32{unix.SYS_CHOWN, unix.SYS_LCHOWN}
