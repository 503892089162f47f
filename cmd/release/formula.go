package main

import (
	"fmt"
	"strings"
	"text/template"
)

var formulaText = template.Must(template.New("formula").Parse(`class Parley < Formula
  desc "Server for conversations with AI agents"
  homepage "{{.Home}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  {{.When}} do
{{- range .Files}}
    {{.When}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install Dir["parley-*"].first => "parley"
    generate_completions_from_executable(bin/"parley", "completion")
  end

  service do
    run [opt_bin/"parley", "serve", "--data", var/"parley", "--workspace", var/"parley-workspace"]
    keep_alive true
    log_path var/"log/parley.log"
    error_log_path var/"log/parley.log"
  end

  def post_install
    (var/"parley-workspace").mkpath
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/parley version")
  end
end
`))

// formula returns a formula for Homebrew, with binaries for macOS and Linux. url is the folder with the files of the
// release.
func formula(version, url string, list sums) (string, error) {
	type file struct{ When, URL, SHA256 string }
	type system struct {
		When  string
		Files []file
	}
	if strings.ContainsAny(version+url, "\"\\#\n") {
		return "", fmt.Errorf("the version %q or the address %q cannot stand in a formula", version, url)
	}
	url = strings.TrimSuffix(url, "/")
	data := struct {
		Home, Version string
		Systems       []system
	}{url, version, []system{{When: "on_macos"}, {When: "on_linux"}}}
	for i, goos := range []string{"darwin", "linux"} {
		for _, on := range []struct{ when, arch string }{{"on_arm", "arm64"}, {"on_intel", "amd64"}} {
			name := target{goos, on.arch}.file()
			sum, ok := list.of(name)
			if !ok {
				return "", fmt.Errorf("the formula needs %s, which was not built", name)
			}
			data.Systems[i].Files = append(data.Systems[i].Files, file{on.when, url + "/" + name, sum})
		}
	}
	var b strings.Builder
	err := formulaText.Execute(&b, data)
	return b.String(), err
}
