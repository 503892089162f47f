package main

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"parley/config"
	"parley/machine"
)

// Checks of the machine that a server runs on, and of its settings and files.

const (
	littleRoom  = 1 << 30
	noRoom      = 100 << 20
	slowSync    = 50 * time.Millisecond
	fewFiles    = 4096
	tooFewFiles = 256
)

func (d *doctor) dataFolder() {
	const name = "data folder"
	info, err := os.Stat(d.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.say(name, warning, "parley serve makes it; or name another with --data", "%s is not there yet", d.Data)
		return
	case err != nil:
		d.say(name, problem, "make it readable, or name another with --data", "%v", err)
		return
	case !info.IsDir():
		d.say(name, problem, "name a folder with --data", "%s is not a folder", d.Data)
		return
	}
	if unused := config.UnusedData(d.env, d.Data); unused != "" {
		d.say(name, warning, "choose it with --data, or remove it", "%s holds data as well, and is not used", unused)
	}
	sync, err := timeSync(d.Data)
	if err != nil {
		d.say(name, problem, "make it writable for the user that runs the server, or name another with --data",
			"%s cannot be written: %v", d.Data, err)
		return
	}
	if runtime.GOOS == "windows" {
		d.say(name, fine, "", "%s, writable; who else can read it is not checked on Windows", d.Data)
	} else if others := info.Mode().Perm() &^ 0o700; others != 0 {
		d.say(name, warning, "chmod 700 "+d.Data, "%s can be used by others than its owner (%04o)", d.Data,
			info.Mode().Perm())
	} else {
		d.say(name, fine, "", "%s, writable, for its owner alone", d.Data)
	}
	d.room()
	switch {
	case d.DatabaseURL != "": // with PostgreSQL no answer waits for this disk
	case sync > slowSync:
		d.say("disk", warning, "use a faster disk: every answer waits for it", "a durable write takes %v", sync)
	default:
		d.say("disk", fine, "", "a durable write takes %v", sync)
	}
}

// timeSync measures how long a small durable write takes. It returns the median of
// five.
func timeSync(dir string) (_ time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var took []time.Duration
	for range 5 {
		start := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2].Round(10 * time.Microsecond), nil
}

func (d *doctor) room() {
	free, err := machine.Free(d.Data)
	if err != nil {
		d.say("room", warning, "run df", "free space is unknown: %v", err)
		return
	}
	switch {
	case free < noRoom:
		d.say("room", problem, "free some space: without it, messages are refused", "%s free", size(free))
	case free < littleRoom:
		d.say("room", warning, "make room", "%s free", size(free))
	default:
		d.say("room", fine, "", "%s free", size(free))
	}
}

func (d *doctor) port() {
	const name = "port"
	l, err := net.Listen("tcp", d.Listen)
	if err == nil {
		_ = l.Close() // no client has connected
		d.say(name, fine, "", "%s is free: no server is running there", d.Listen)
		return
	}
	switch d.answers = answers(d.Listen, 4*time.Second); {
	case d.answers:
		d.say(name, fine, "", "a Parley serves on %s", d.Listen)
	case errors.Is(err, errInUse):
		d.say(name, problem, "stop that program, or choose another address with --listen",
			"%s is in use by a program that is not Parley", d.Listen)
	default:
		d.say(name, problem, "choose another address with --listen", "cannot listen on %s: %v", d.Listen, err)
	}
}

// answers reports whether a Parley listens at an address. A server that does not
// answer in time counts as none.
func answers(addr string, within time.Duration) bool {
	ends := time.Now().Add(within)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]string{"/healthz": `"ok"`, "/": "Parley"} {
		client.Timeout = max(time.Until(ends), 1) // zero would mean no limit
		res, err := client.Get("http://" + addr + path)
		if err != nil {
			return false
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, 4096))
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			return false
		}
	}
	return true
}

func (d *doctor) agents(f folder) {
	const name = "agents"
	if f.noFiles != nil {
		d.say(name, problem, "move it as the message says: parley serve would not start", "%v", f.noFiles)
		return
	}
	agents, err := config.LoadAgents(f.files, f.Agents, f.Tenant, checkAgent(d.Settings, builtInTools(f.files, d.box)))
	if err != nil {
		d.say(name, problem, "correct the file or move it away: parley serve would not start", "%v", err)
		return
	}
	for _, note := range agents.Ignored() {
		d.say(name, warning, "remove the line; it has no effect", "%s", note)
	}
	var names []string
	for _, a := range agents.List(f.Tenant) {
		names = append(names, a.Name)
	}
	where := "from " + f.Agents
	if files, _ := filepath.Glob(filepath.Join(f.Agents, "*.md")); len(files) == 0 {
		where = "built in, because " + f.Agents + " has no files"
	}
	d.say(name, fine, "", "%s (%s)", strings.Join(names, ", "), where)
}

// sandbox reports the abilities of the sandbox. They were tested when it was
// created.
func (d *doctor) sandbox() {
	const name = "sandbox"
	switch box := d.box; {
	case d.box == nil && d.noBox == nil: // agents reports why
	case d.noBox != nil:
		d.say(name, problem, "move the folder that the message names, or choose another with --workspace",
			"%v", d.noBox)
	case box.Missing() != nil:
		d.say(name, warning, "install bubblewrap; until then commands ask a person, and under full-auto are refused",
			"%s", box)
	case box.Shortcomings() != "":
		d.say(name, warning, "install bubblewrap, or allow user namespaces", "%s. %s", box, box.Shortcomings())
	case box.AsRoot():
		d.say(name, fine, "", "%s; commands run as root without capabilities, and without a limit on the number of "+
			"processes: "+
			"run the server as another user, or give the workspace to one", box)
	default:
		d.say(name, fine, "", "%s", box)
	}
}

func (d *doctor) descriptors() {
	const name = "open files"
	n, err := machine.OpenFiles()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		d.say(name, fine, "", "this system has no limit")
	case err != nil:
		d.say(name, warning, "run ulimit -n", "the limit is unknown: %v", err)
	case n < tooFewFiles:
		d.say(name, problem, "raise it: ulimit -n 65536, or LimitNOFILE= of the service",
			"at most %d, and every client takes one", n)
	case n < fewFiles:
		d.say(name, warning, "raise it: ulimit -n 65536, or LimitNOFILE= of the service",
			"at most %d, and every client takes one", n)
	default:
		d.say(name, fine, "", "at most %d", n)
	}
}
