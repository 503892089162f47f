//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Attacks by commands on later or concurrent commands of the same workspace.

// TestTheTopOfTheWorkspaceIsWritable checks that protected places at the top of
// the workspace do not stop ordinary work there. Landlock alone is the
// exception.
func TestTheTopOfTheWorkspaceIsWritable(t *testing.T) {
	each(t, func(b *bench) {
		b.box.protected = append(b.box.protected, Protected{"skills", false}, Protected{".parley", false})
		if b.box.rung == landlock {
			b.shell(1, "touch made")
			if !strings.Contains(b.box.Shortcomings(), "directly in a folder that holds something protected") {
				b.t.Errorf("%q", b.box.Shortcomings())
			}
			return
		}
		b.shell(0, "touch made && mkdir -p build/out && mv made build/ && rm -r build && ln -s src link && rm link && echo x > top && mv top lib/ && mv lib other && mv other lib")
		if b.box.Shortcomings() != "" {
			b.t.Errorf("%q", b.box.Shortcomings())
		}
	})
}

// TestNoLinkInPlaceOfAProtectedFolder checks that a command cannot make a
// missing protected folder, as a folder or as a link to elsewhere. Otherwise
// later commands could get whatever the link leads to.
func TestNoLinkInPlaceOfAProtectedFolder(t *testing.T) {
	each(t, func(b *bench) {
		b.box.protected = append(b.box.protected, Protected{"skills", false}, Protected{".parley", false}, Protected{"lib/deep/skills", false})
		for _, name := range []string{"skills", ".parley", "lib/deep/skills"} {
			for _, target := range []string{"../../../../../../../../etc", "..", "/nowhere", b.outside} {
				b.shell(1, fmt.Sprintf("rmdir %[2]s 2>/dev/null; ln -sT %[1]s %[2]s", target, name))
			}
			b.shell(1, "rmdir "+name+"; rm -r "+name+"; mv "+name+" gone; echo evil > "+name+"/SKILL.md")
			if _, err := os.Lstat(filepath.Join(b.workspace, name)); err == nil {
				b.t.Errorf("%s was made", name)
			}
		}
		b.fail([]string{"read", b.outside + "/secret"}, []string{"read", "/etc/shadow"}, []string{"read", b.data + "/key"})
	})
}

// TestALinkInAProtectedPlaceIsNotFollowed checks that a link that a person has
// put in a protected place is covered or refused, and never followed.
func TestALinkInAProtectedPlaceIsNotFollowed(t *testing.T) {
	each(t, func(b *bench) {
		b.box.protected = append(b.box.protected, Protected{"skills", false})
		if err := os.Symlink(b.outside, b.workspace+"/skills"); err != nil {
			b.t.Fatal(err)
		}
		var out strings.Builder
		ended, err := b.box.Run(b.t.Context(), Command{Argv: []string{"bash", "-c", "cat skills/secret; rm skills; ls -l skills"}, Dir: b.workspace, Output: &out})
		switch {
		case strings.Contains(out.String(), "secret of secret"):
			b.t.Errorf("%s", out.String())
		case b.box.rung == bubblewrap && (err == nil || !strings.Contains(err.Error(), "symbolic link")):
			b.t.Errorf("%+v %v", ended, err)
		case b.box.rung != bubblewrap && err != nil:
			b.t.Error(err)
		}
		if to, _ := os.Readlink(b.workspace + "/skills"); to != b.outside {
			b.t.Error("it was replaced")
		}
	})
}

// A command cannot move the folders around a protected place away and make new
// ones.
func TestParentsOfProtectedPlacesStay(t *testing.T) {
	each(t, func(b *bench) {
		if err := os.MkdirAll(b.workspace+"/conf/in/agents", 0o755); err != nil {
			b.t.Fatal(err)
		}
		for _, name := range []string{"conf/in/agents/live.md", "conf/other"} {
			if err := os.WriteFile(filepath.Join(b.workspace, name), []byte("approval: suggest"), 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
		b.box.protected = append(b.box.protected, Protected{"conf/in/agents", true}, Protected{"start/.env", true})
		b.shell(1, "mv conf conf2 && mkdir -p conf/in/agents && echo full-auto > conf/in/agents/live.md")
		b.shell(1, "mv conf/in conf/in2; rm -r conf; mkdir -p conf/in/agents && echo full-auto > conf/in/agents/live.md")
		b.shell(1, "mv start start2; mkdir -p start; echo PARLEY_AUTH=none > start/.env")
		if got := b.content(b.workspace + "/conf/in/agents/live.md"); got != "approval: suggest" {
			b.t.Errorf("%q", got)
		}
		if b.box.rung != landlock {
			b.shell(0, "echo x > conf/new && mv conf/new conf/newer && rm conf/newer && echo y > conf/in/file && rm conf/in/file")
		}
		if _, err := os.Lstat(b.workspace + "/start"); err == nil {
			b.t.Error("a cover was left behind")
		}
	})
}

// TestSecretsAreHiddenEverywhere checks that secret files are hidden
// everywhere: below folders that other tools skip, below long paths, among very
// many files, and in repositories.
func TestSecretsAreHiddenEverywhere(t *testing.T) {
	each(t, func(b *bench) {
		places := []string{"node_modules/pkg", ".git/objects", "a/.git/modules", "lib/nested/.git", strings.Repeat("deep/", 100), strings.Repeat(strings.Repeat("n", 200)+"/", 9)}
		for _, dir := range places {
			if err := os.MkdirAll(filepath.Join(b.workspace, dir), 0o755); err != nil {
				b.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.workspace, dir, ".env"), []byte("KEY=hidden-secret"), 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
		// A folder that cannot be listed, but that its owner could make
		// accessible again.
		closed := b.workspace + "/closed"
		if err := os.Mkdir(closed, 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(closed+"/.env", []byte("KEY=hidden-secret"), 0o644); err != nil {
			b.t.Fatal(err)
		}
		if err := os.Chmod(closed, 0); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { os.Chmod(closed, 0o755) })
		for _, readOnly := range []bool{true, false} {
			out, _ := b.run(Command{Argv: []string{"bash", "-c", "chmod 755 closed; grep -rs hidden-secret . ; find . -name .env -exec cat {} +; cat */.env */*/.env; true"}, ReadOnly: readOnly})
			if strings.Contains(out, "hidden-secret") {
				b.t.Errorf("read only %v: %.300s", readOnly, out)
			}
		}
		for _, dir := range places {
			if got := b.content(filepath.Join(b.workspace, dir, ".env")); got != "KEY=hidden-secret" {
				b.t.Errorf("%s: %q", dir, got)
			}
		}
	})
}

// TestAWalkThatIsCutRefuses checks that nothing runs if the workspace has more
// entries than the limit: an unseen entry may be a secret.
func TestAWalkThatIsCutRefuses(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for limit, ok := range map[int]bool{30: true, 29: false} {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = (&walk{secret: isEnv, limit: limit}).folder(fd, "", 0)
		if (err == nil) != ok {
			t.Errorf("%d: %v", limit, err)
		}
	}
}

// TestSecretsBelowVeryLongPaths checks that a path longer than the kernel's
// limit hides the secrets below it.
func TestSecretsBelowVeryLongPaths(t *testing.T) {
	each(t, func(b *bench) {
		name := strings.Repeat("x", 200)
		at, err := unix.Open(b.workspace+"/lib", unix.O_PATH|unix.O_DIRECTORY, 0)
		for range 30 {
			if err == nil {
				err = unix.Mkdirat(at, name, 0o755)
			}
			if err == nil {
				var next int
				next, err = unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
				unix.Close(at)
				at = next
			}
		}
		if err == nil {
			var fd int
			if fd, err = unix.Openat(at, ".env", unix.O_CREAT|unix.O_WRONLY, 0o644); err == nil {
				unix.Write(fd, []byte("KEY=hidden-secret"))
				unix.Close(fd)
			}
			unix.Close(at)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		out := b.shell(0, "cd lib; while cd "+name+" 2>/dev/null; do :; done; cat .env; cd ~; find $OLDPWD/.. -name .env -exec cat {} + ; true")
		if strings.Contains(out, "hidden-secret") {
			b.t.Errorf("%.300s", out)
		}
	})
}

// TestAReplacedFolderIsRefused checks that an additional folder in the
// workspace is refused once a link has replaced it.
func TestAReplacedFolderIsRefused(t *testing.T) {
	each(t, func(b *bench) {
		cache := b.workspace + "/lib/cache"
		if err := os.Mkdir(cache, 0o755); err != nil {
			b.t.Fatal(err)
		}
		script := Command{Argv: []string{"bash", "-c", "echo made > lib/cache/file"}, Dir: b.workspace, ReadOnly: true, Write: []string{cache}}
		if out, ended := b.run(script); ended.Exit != 0 || b.content(cache+"/file") != "made\n" {
			b.t.Fatalf("%+v %s", ended, out)
		}
		b.shell(0, "rm -r lib/cache && ln -s "+b.outside+" lib/cache")
		script.Output = io.Discard
		_, err := b.box.Run(b.t.Context(), script)
		if err == nil || !strings.Contains(err.Error(), "no symbolic link") {
			b.t.Errorf("%v", err)
		}
		for _, c := range []Command{{Write: []string{b.workspace}}, {Read: []string{b.workspace + "/absent"}}} {
			c.Argv, c.Dir, c.Output = []string{"true"}, b.workspace, io.Discard
			if _, err := b.box.Run(b.t.Context(), c); err == nil {
				b.t.Errorf("%+v", c)
			}
		}
	})
}

// TestFurtherFoldersAreResolvedOnce checks that links to additional folders are
// followed outside the workspace, where an operator has put them, and never
// inside it.
func TestFurtherFoldersAreResolvedOnce(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &Sandbox{workspace: top + "/ws", protected: []Protected{{"real/agents", true}}, outside: []string{top + "/other/data"}}
	for _, dir := range []string{"ws/real/agents", "other/cache", "other/data/sub"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ws/link": "../other/cache", "short": "other/cache", "in": "ws/link", "round": "round", "over": "ws/real/../../other"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"other/cache": "other/cache", "short": "other/cache", "ws/link": "ws/link", "in": "ws/link",
		"round": "", "over": "", "absent": "", "ws/real/sub": "ws/real/sub",
		"ws": "!", "ws/real": "!", "ws/real/agents": "!", "ws/real/agents/sub": "!", "other": "!", "other/data/sub": "!",
	} {
		got, err := s.Resolve(filepath.Join(top, path), true)
		if want == "!" { // a command must not get it
			if err == nil {
				t.Errorf("%s is given", path)
			}
			continue
		}
		if want != "" {
			want = filepath.Join(top, want)
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
}

// A command without the workspace sees nothing of it, wherever the workspace is.
func TestACommandWithoutTheWorkspace(t *testing.T) {
	each(t, func(b *bench) {
		out, ended := b.runElsewhere(Command{Argv: []string{"bash", "-c", "pwd; echo x > file && cat file; cat " + b.workspace + "/src/file"}, NoWorkspace: true})
		if ended.Exit == 0 || !strings.Contains(out, "/home\nx\n") || strings.Contains(out, "secret") {
			b.t.Errorf("%+v %s", ended, out)
		}
		if entries, err := os.ReadDir(b.workspace); err != nil || len(entries) != 5 {
			b.t.Errorf("%v %v", entries, err)
		}
		for _, folder := range []string{b.workspace + "/lib", filepath.Dir(b.workspace)} {
			if _, err := b.box.Run(b.t.Context(), Command{Argv: []string{"true"}, NoWorkspace: true, Read: []string{folder}, Output: io.Discard}); err == nil {
				b.t.Errorf("%s was given", folder)
			}
		}
	})
}

func (b *bench) runElsewhere(c Command) (string, Ended) {
	b.t.Helper()
	var out strings.Builder
	c.Output = &out
	ended, err := b.box.Run(b.t.Context(), c)
	if err != nil {
		b.t.Fatalf("%q: %v (%s)", c.Argv, err, out.String())
	}
	return out.String(), ended
}

// TestNamesThatAreNotUTF8 checks that a name that is not UTF-8 is protected
// like any other, and does not make later commands fail.
func TestNamesThatAreNotUTF8(t *testing.T) {
	each(t, func(b *bench) {
		odd := b.workspace + "/lib/conf\xff"
		if err := os.MkdirAll(odd, 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(odd+"/.env", []byte("KEY=hidden-secret"), 0o644); err != nil {
			b.t.Fatal(err)
		}
		decoy := b.workspace + "/lib/conf\uFFFD"
		if err := os.MkdirAll(decoy, 0o755); err != nil {
			b.t.Fatal(err)
		}
		for _, name := range []string{decoy + "/.env", b.workspace + "/lib/.env.\xfe"} {
			if err := os.WriteFile(name, []byte("decoy"), 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
		for _, readOnly := range []bool{true, false} {
			out, ended := b.run(Command{Argv: []string{"bash", "-c", "cat lib/*/.env; grep -rs hidden-secret lib; echo over"}, ReadOnly: readOnly})
			if ended.Exit != 0 || strings.Contains(out, "hidden-secret") || !strings.Contains(out, "over") {
				b.t.Errorf("%+v %q", ended, out)
			}
		}
	})
}

// TestOddFoldersStopNoCommand checks that later commands still run if a folder
// can be listed but not entered, and if there are very many secrets.
func TestOddFoldersStopNoCommand(t *testing.T) {
	each(t, func(b *bench) {
		dir := b.workspace + "/lib/listed"
		if err := os.MkdirAll(dir+"/in", 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/.env", []byte("KEY=hidden-secret"), 0o644); err != nil {
			b.t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o444); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { os.Chmod(dir, 0o755) })
		for i := range maxWrapped + 1 {
			if err := os.WriteFile(fmt.Sprintf("%s/src/.env.%d", b.workspace, i), []byte("hidden-secret"), 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
		out := b.shell(0, "chmod 755 lib/listed; cat lib/listed/.env src/.env.*; echo over")
		if strings.Contains(out, "hidden-secret") || !strings.Contains(out, "over") {
			b.t.Errorf("%.200q", out)
		}
	})
}

// TestAWorkspaceInASharedFolder checks that a workspace is protected even if it
// lies in a folder that all commands can read.
func TestAWorkspaceInASharedFolder(t *testing.T) {
	top, err := os.MkdirTemp("/opt", "parley-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(top)
	if err := os.Mkdir(top+"/agents", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/.env", "/agents/a.md"} {
		if err := os.WriteFile(top+name, []byte("hidden-secret"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	each(t, func(b *bench) {
		b.box.workspace, b.box.protected = top, []Protected{{"agents", true}}
		out, ended := b.run(Command{Argv: []string{"bash", "-c", "cat .env agents/a.md; echo over"}, Dir: top, ReadOnly: true})
		if strings.Contains(out, "hidden-secret") || !strings.Contains(out, "over") {
			b.t.Errorf("%+v %s", ended, out)
		}
	})
}

// TestDeepFoldersAreRemoved checks that the temporary folder of a command is removed,
// whatever the depth and the permissions of its contents.
func TestDeepFoldersAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; i < 5_000 && err == nil; i++ {
		if err = unix.Mkdirat(at, "d", 0o755); err == nil && i%100 == 0 {
			err = unix.Mknodat(at, "file", unix.S_IFREG|0o400, 0)
		}
		if err == nil {
			var next int
			next, err = unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if i%3 == 0 {
				unix.Fchmod(at, 0o100)
			}
			unix.Close(at)
			at = next
		}
	}
	unix.Close(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir+"/link"); err != nil {
		os.Chmod(dir, 0o700)
		if err = os.Symlink("/etc", dir+"/link"); err != nil {
			t.Fatal(err)
		}
	}
	removeAll(dir)
	if _, err := os.Lstat(dir); err == nil {
		t.Error("it is still there")
	}
}

// TestNoSetuid checks that no system call sets a setuid or setgid bit.
func TestNoSetuid(t *testing.T) {
	each(t, func(b *bench) {
		file := b.workspace + "/lib/file"
		b.fail([]string{"setuid", "chmod", file}, []string{"setuid", "fchmod", file}, []string{"setuid", "open", file + "1"},
			[]string{"setuid", "mkdir", file + "2"}, []string{"setuid", "mknod", file + "3"}, []string{"setuid", "openat2", file + "4"})
		b.shell(1, "chmod 6755 lib/file || exit 1")
		b.shell(0, "chmod 755 lib/file && umask 077 && echo x > lib/new && mkdir -m 755 lib/d && install -m 755 lib/new lib/installed && tar cf - lib/new | tar xf - -C lib/d")
		entries, err := os.ReadDir(b.workspace + "/lib")
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				b.t.Errorf("%s is %s", e.Name(), info.Mode())
			}
		}
	})
}

// A server that runs as root runs commands as the owner of the workspace.
func TestCommandsOfRootRunAsTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is not root")
	}
	each(t, func(b *bench) {
		err := filepath.WalkDir(filepath.Dir(b.workspace), func(name string, _ os.DirEntry, err error) error {
			if err == nil {
				err = os.Lchown(name, 65534, 65534)
			}
			return err
		})
		for dir := filepath.Dir(b.workspace); err == nil && strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if box, err := New(Options{Workspace: b.workspace}); err != nil || !strings.Contains(box.String(), "65534") || box.user == nil {
			b.t.Fatalf("commands run as root: %s %v", box, err)
		}
		rung := b.box.rung
		switch err := b.box.try(rung, ownerOf(b.workspace)); {
		case err != nil && rung == bubblewrap:
			b.t.Skipf("bubblewrap cannot be given this program, which only root can reach: %v", err)
		case err != nil:
			b.t.Fatal(err)
		}
		out := b.shell(0, "id -u; id -G; echo x > lib/made; echo y > $TMPDIR/t; cat src/file > /dev/null")
		if !strings.HasPrefix(out, "65534\n65534\n") {
			b.t.Errorf("%s", out)
		}
		var stat unix.Stat_t
		if err := unix.Stat(b.workspace+"/lib/made", &stat); err != nil || stat.Uid != 65534 || stat.Gid != 65534 {
			b.t.Errorf("%v %d %d", err, stat.Uid, stat.Gid)
		}
	})
}

// TestCoversAreRemovedWithoutLoss checks that an unused cover is removed, and
// that a file which a person has put there in the meantime is not.
func TestCoversAreRemovedWithoutLoss(t *testing.T) {
	dir := t.TempDir()
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	name := dir + "/.env"
	for what, write := range map[string]func() (closing io.Closer){
		"written": func() io.Closer { os.WriteFile(name, []byte("KEY=1"), 0o600); return nil },
		"replaced": func() io.Closer {
			os.WriteFile(dir+"/.env~", []byte("KEY=1"), 0o600)
			os.Rename(dir+"/.env~", name)
			return nil
		},
		"replaced by nothing": func() io.Closer { os.WriteFile(dir+"/x", nil, 0o600); os.Rename(dir+"/x", name); return nil },
		"open":                func() io.Closer { f, _ := os.OpenFile(name, os.O_WRONLY, 0); return f },
	} {
		var c covers
		c.enter(root)
		if err := c.use(root, ".env", true); err != nil {
			t.Fatal(err)
		}
		closing := write()
		want, _ := os.ReadFile(name)
		c.leave(root)
		got, err := os.ReadFile(name)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if closing != nil {
			closing.Close()
		}
		os.Remove(name)
	}
	var c covers
	c.enter(root)
	if err := c.use(root, ".env", true); err != nil {
		t.Fatal(err)
	}
	c.leave(root)
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
