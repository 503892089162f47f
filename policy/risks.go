package policy

import (
	"path"
	"slices"
	"strings"
)

// Risks that a person should look at, by the names of programs. A missing entry
// costs attention, not safety: commands never run because of this table.
var notes = []struct {
	risk     string
	programs string
}{
	{"deletes or overwrites files", "rm rmdir unlink shred truncate dd mkfs wipefs mv cp install rsync ln tee"},
	{"uses the network", "curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp ping dig nslookup host getent " +
		"npm npx yarn pnpm pip pip3 gem brew apt apt-get dnf yum apk docker podman kubectl gh"},
	{"asks for more rights", "sudo su doas pkexec setpriv runuser chroot nsenter unshare"},
	{"runs a program that cannot be judged", "python python2 python3 node deno bun perl ruby php lua awk gawk tclsh " +
		"Rscript osascript make cmake ninja gradle mvn cargo go rake just npm npx yarn pnpm eval source . exec bash sh zsh dash ksh fish env xargs watch parallel at crontab"},
	{"changes who may use files", "chmod chown chgrp setfacl chattr"},
	{"stops other programs or the machine", "kill pkill killall shutdown reboot halt poweroff systemctl service"},
	{"changes the system", "mount umount iptables nft sysctl insmod modprobe useradd usermod passwd visudo crontab"},
}

var gitRisks = map[string]string{
	"push": "uses the network", "pull": "uses the network", "fetch": "uses the network", "clone": "uses the network",
	"ls-remote": "uses the network",
	"reset":     "discards work", "clean": "discards work", "checkout": "discards work", "restore": "discards work",
	"rebase": "discards work", "rm": "discards work",
	"config": "changes what git runs", "filter-branch": "discards work", "gc": "discards work",
	"branch": "changes branches", "tag": "changes tags",
}

func (j *judging) risks() []string {
	var all []string
	add := func(risk string) {
		if !slices.Contains(all, risk) {
			all = append(all, risk)
		}
	}
	for _, target := range j.writes {
		add("writes to a file")
		j.outside([]string{target}, add)
	}
	for _, c := range j.commands {
		_, harmless := similarName(plain(c))
		for i, text := range c {
			name := path.Base(text)
			if i > 0 && (!wraps(c[:i]) || strings.HasPrefix(text, "-")) {
				break
			}
			for _, n := range notes {
				if !harmless && slices.Contains(strings.Fields(n.programs), name) {
					add(n.risk)
				}
			}
			if name == "find" && slices.ContainsFunc(c, func(a string) bool { return a == "-delete" }) {
				add("deletes or overwrites files")
			}
			if name == "git" && i+1 < len(c) {
				for _, a := range c[i+1:] {
					if risk, ok := gitRisks[a]; ok {
						add(risk)
						break
					}
				}
			}
		}
		j.outside(c[min(1, len(c)):], add)
	}
	return all
}

// wraps reports whether the first word is a wrapper, so that the name of
// another program may follow.
func wraps(words []string) bool {
	return slices.Contains([]string{"sudo", "doas", "env", "nohup", "nice", "time", "timeout", "command", "exec",
		"xargs", "stdbuf", "setsid"}, path.Base(words[0]))
}

// outside adds a risk if a path leads out of the workspace, judged by its text
// alone.
func (j *judging) outside(words []string, add func(string)) {
	for _, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok {
			w = value
		}
		clean := path.Clean(w)
		inside := j.Workspace != "" && (clean == j.Workspace || strings.HasPrefix(clean, j.Workspace+"/"))
		if w == "~" || strings.HasPrefix(w, "~/") || clean == ".." || strings.HasPrefix(clean, "../") ||
			path.IsAbs(w) && clean != "/dev/null" && !inside {
			add("names places outside the workspace")
		}
	}
}
