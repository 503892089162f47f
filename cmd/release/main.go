// Command release writes the files of a release into a folder: a static binary for each system, their checksums, a list
// of the libraries in them (SBOM) and a formula for Homebrew. The console must be built first.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// A target is a system that a release is built for.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

// file returns the name of the target's binary.
func (t target) file() string {
	name := "parley-" + t.os + "-" + t.arch
	if t.os == "windows" {
		name += ".exe"
	}
	return name
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	flag.StringVar(&r.version, "version", "", "version of the release, as git describe prints it")
	flag.StringVar(&r.folder, "o", "dist", "folder to write")
	flag.StringVar(&r.url, "url", "", "address of the folder from which the files will be downloaded, for the formula")
	at := flag.String("time", "", "time of the release for the SBOM, as git log --format=%cI prints it")
	only := flag.String("only", "", "systems to build, such as linux/amd64,darwin/arm64 (default: all)")
	flag.Parse()
	if err := r.parse(*at, *only); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(2)
	}
	if err := r.write(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A release contains the options of a release.
type release struct {
	version string
	folder  string
	url     string // URL of the folder for downloads; empty: no formula is written
	at      time.Time
	targets []target
}

func (r *release) parse(at, only string) (err error) {
	if r.version == "" {
		return errors.New("-version is missing")
	}
	if at != "" {
		if r.at, err = time.Parse(time.RFC3339, at); err != nil {
			return fmt.Errorf("-time: %w", err)
		}
	}
	r.targets = targets
	if only == "" {
		return nil
	}
	r.targets = nil
	for name := range strings.SplitSeq(only, ",") {
		before := len(r.targets)
		for _, t := range targets {
			if name == t.os+"/"+t.arch {
				r.targets = append(r.targets, t)
			}
		}
		if len(r.targets) == before {
			return fmt.Errorf("-only: there is no release for %q", name)
		}
	}
	return nil
}

func (r *release) write(ctx context.Context, out io.Writer) error {
	if _, err := os.Stat("web/dist/index.html"); err != nil {
		return errors.New("the console is not built; make release builds it first")
	}
	if err := os.RemoveAll(r.folder); err != nil { // an earlier release must not leave checksums
		return err
	}
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	for _, t := range r.targets {
		start := time.Now()
		if err := r.build(ctx, t); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
		fmt.Fprintf(out, "%s (%v)\n", t.file(), time.Since(start).Round(time.Second))
	}
	lock, err := os.ReadFile("web/package-lock.json")
	if err != nil {
		return err
	}
	var binaries []string
	for _, t := range r.targets {
		binaries = append(binaries, filepath.Join(r.folder, t.file()))
	}
	modules, err := modulesOf(binaries)
	if err != nil {
		return err
	}
	bom, err := newBOM(r.version, r.at, modules, lock)
	if err != nil {
		return err
	}
	files := map[string][]byte{"parley.cdx.json": bom}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		if files[name], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(r.folder, name), content, 0o644); err != nil {
			return err
		}
	}
	sums, err := checksums(r.folder)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.folder, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	if r.url == "" {
		fmt.Fprintln(out, "No formula for Homebrew: set RELEASE_URL to the address of these files.")
		return nil
	}
	formula, err := formula(r.version, r.url, sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, "parley.rb"), []byte(formula), 0o644)
}

// build builds a static binary. It contains no paths of this machine, and the same sources result in the same bytes.
func (r *release) build(ctx context.Context, t target) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", filepath.Join(r.folder, t.file()),
		"./cmd/parley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// sums are the checksums of files, in the order of their names.
type sums []sum

type sum struct{ file, sha256 string }

// String returns the format that sha256sum --check reads.
func (s sums) String() string {
	var b strings.Builder
	for _, f := range s {
		fmt.Fprintf(&b, "%s  %s\n", f.sha256, f.file)
	}
	return b.String()
}

func (s sums) of(file string) (string, bool) {
	for _, f := range s {
		if f.file == file {
			return f.sha256, true
		}
	}
	return "", false
}

// checksums returns the checksums of all files in a folder.
func checksums(folder string) (list sums, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		list = append(list, sum{e.Name(), hex.EncodeToString(hash.Sum(nil))})
	}
	return list, nil
}
