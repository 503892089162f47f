package tool

import (
	"path"
	"slices"
	"strings"
)

// runsElsewhere finds files that, once written, have something run outside the
// sandbox without anybody asking for it: by a build server when they are pushed,
// by git, an editor or a shell when a person comes along.
func runsElsewhere(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(runFiles, path.Base(name)) {
		return true
	}
	return slices.ContainsFunc(runFolders, func(folder string) bool {
		return strings.HasPrefix(name, folder) || strings.Contains(name, "/"+folder)
	})
}

var runFiles = []string{
	".gitlab-ci.yml", ".travis.yml", ".drone.yml", ".woodpecker.yml", ".cirrus.yml", ".appveyor.yml", "appveyor.yml",
	"azure-pipelines.yml", "bitbucket-pipelines.yml", "cloudbuild.yaml", "jenkinsfile",
	".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".gitmodules", ".envrc",
}

var runFolders = []string{
	".github/workflows/", ".github/actions/", ".gitlab/", ".gitea/", ".forgejo/", ".circleci/", ".buildkite/", ".woodpecker/", ".ci/",
	".husky/", ".githooks/", ".vscode/", ".idea/", ".devcontainer/",
}
