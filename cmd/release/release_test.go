package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const smallLock = `{"lockfileVersion": 3, "packages": {
	"": {"name": "parley-console"},
	"node_modules/react": {"version": "19.3.1", "license": "MIT", "integrity": "sha512-/8o="},
	"node_modules/@a/b": {"version": "1.0.0+x", "license": "MIT OR Apache-2.0"},
	"node_modules/react/node_modules/@a/b": {"version": "2.0.0"},
	"node_modules/x/node_modules/react": {"version": "19.3.1", "license": "MIT", "integrity": "sha512-/8o="},
	"node_modules/vite": {"version": "8.3.5", "dev": true},
	"node_modules/fsevents": {"version": "2.3.3", "dev": true, "optional": true}}}`

func TestTheSBOM(t *testing.T) {
	at := time.Date(2026, 11, 16, 20, 0, 0, 0, time.FixedZone("", 3600))
	modules := []module{{"example.com/one", "v1.2.3", "h1:abc="}, {"std", "1.26.8", ""}}
	raw, err := newBOM("v1.0.0", at, modules, []byte(smallLock))
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Spec != "1.6" || b.Metadata.Timestamp != "2026-11-16T19:00:00Z" ||
		b.Metadata.Component.Version != "v1.0.0" {
		t.Errorf("the head is %+v", b)
	}
	var refs []string
	for _, c := range b.Components {
		refs = append(refs, c.PURL)
	}
	want := []string{"pkg:golang/example.com/one@v1.2.3", "pkg:golang/std@1.26.8", "pkg:npm/%40a/b@1.0.0+x",
		"pkg:npm/react@19.3.1", "pkg:npm/%40a/b@2.0.0"}
	if !slices.Equal(refs, want) {
		t.Errorf("components:\n%s\nwant\n%s", strings.Join(refs, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(b.Dependencies[0].DependsOn, want) {
		t.Errorf("parley depends on %q", b.Dependencies[0].DependsOn)
	}
	if scoped := b.Components[2]; scoped.Group != "@a" || scoped.Name != "b" ||
		scoped.Licenses[0].Expression != "MIT OR Apache-2.0" {
		t.Errorf("a scoped package: %+v", scoped)
	}
	if h := b.Components[3].Hashes; len(h) != 1 || h[0] != (bomHash{"SHA-512", "ffca"}) {
		t.Errorf("hashes: %+v", h)
	}
	for _, bad := range []string{`{`, `{"lockfileVersion": 2}`,
		`{"lockfileVersion": 3, "packages": {"node_modules/a": {"integrity": "sha512"}}}`} {
		if _, err := newBOM("v1", at, nil, []byte(bad)); err == nil {
			t.Errorf("the lock file %s was accepted", bad)
		}
	}
}

// TestTheConsoleIsInTheSBOM reads the console's package-lock.json.
func TestTheConsoleIsInTheSBOM(t *testing.T) {
	lock, err := os.ReadFile("../../web/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := npmPackages(lock)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range list {
		names[c.Name] = true
		if c.Version == "" || len(c.Hashes) == 0 {
			t.Errorf("%s has no version or no hash", c.Ref)
		}
	}
	if !names["react-dom"] || names["vite"] || names["typescript"] {
		t.Errorf("the packages of the console are %v", names)
	}
}

func TestModulesOfABinary(t *testing.T) {
	list, err := modulesOf([]string{os.Args[0], os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	std := module{path: "std", version: strings.TrimPrefix(runtime.Version(), "go")}
	if n := len(slices.DeleteFunc(list, func(m module) bool { return m != std })); n != 1 {
		t.Errorf("the standard library is listed %d times", n)
	}
	if _, err := modulesOf([]string{"release_test.go"}); err == nil {
		t.Error("a file that is no binary was accepted")
	}
}

func TestChecksumsAndFormula(t *testing.T) {
	dir := t.TempDir()
	for _, x := range targets {
		if err := os.WriteFile(filepath.Join(dir, x.file()), []byte(x.file()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := checksums(dir)
	if err != nil {
		t.Fatal(err)
	}
	const arm = "parley-darwin-arm64"
	sum, _ := list.of(arm)
	if len(list) != 6 || len(sum) != 64 || !strings.Contains(list.String(), sum+"  "+arm+"\n") {
		t.Fatalf("checksums:\n%s", list)
	}
	text, err := formula("v1.0.0", "https://downloads.example.com/v1.0.0/", list)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  version \"v1.0.0\"\n", `
  on_macos do
    on_arm do
      url "https://downloads.example.com/v1.0.0/` + arm + `"
      sha256 "` + sum + `"
    end
    on_intel do
`, "\n  on_linux do\n    on_arm do\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the formula has no\n%s\nin\n%s", want, text)
		}
	}
	if strings.Contains(text, "windows") || strings.Count(text, "sha256") != 4 {
		t.Errorf("the formula has other files:\n%s", text)
	}
	if opened, closed := strings.Count(text, " do\n")+strings.Count(text, "  def ")+1,
		strings.Count(text, "end\n"); opened != closed {
		t.Errorf("the formula opens %d blocks and closes %d:\n%s", opened, closed, text)
	}
	if _, err := formula("v1", "https://example.com/#{x}", list); err == nil {
		t.Error("an address that Ruby would evaluate was accepted")
	}
	if _, err := formula("v1", "https://example.com", list[1:]); err == nil {
		t.Error("a formula without one of its files was written")
	}
}

func TestOnly(t *testing.T) {
	r := release{version: "v1"}
	if err := r.parse("", "linux/amd64,windows/arm64"); err != nil || len(r.targets) != 2 ||
		r.targets[1].file() != "parley-windows-arm64.exe" {
		t.Errorf("%+v, %v", r.targets, err)
	}
	for _, bad := range [][2]string{{"", "plan9/amd64"}, {"yesterday", ""}} {
		if err := r.parse(bad[0], bad[1]); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
