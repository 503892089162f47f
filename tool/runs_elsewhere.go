package tool

import (
	"path"
	"slices"
	"strings"
)

// runsElsewhere reports whether writing a file can make code run outside the
// sandbox although no person starts it. A build server may run it after a push.
// Git, an editor, a shell, a package manager or another agent may run it when a
// person works in the folder. Files that run only when a person builds or
// tests, such as a Makefile, are ordinary.
func runsElsewhere(name string) bool {
	name = strings.ToLower(path.Clean(name))
	base := path.Base(name)
	if slices.Contains(runFiles, base) || strings.HasSuffix(base, ".code-workspace") {
		return true
	}
	return slices.ContainsFunc(runFolders, func(folder string) bool {
		return strings.HasPrefix(name+"/", folder) || strings.Contains(name+"/", "/"+folder)
	})
}

var runFiles = strings.Fields(`
	.gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml .drone.yaml .drone.star .drone.jsonnet .woodpecker.yml
	.woodpecker.yaml .cirrus.yml .cirrus.star .appveyor.yml appveyor.yml azure-pipelines.yml
	azure-pipelines.yaml bitbucket-pipelines.yml cloudbuild.yaml cloudbuild.yml buildspec.yml buildspec.yaml
	jenkinsfile codefresh.yml codemagic.yaml bitrise.yml .build.yml netlify.toml vercel.json render.yaml
	.readthedocs.yml .readthedocs.yaml

	.pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml .lefthook.yml lefthook.yaml .lefthook.yaml
	lefthook.toml lefthook.json lefthook-local.yml .lefthook-local.yml .overcommit.yml .huskyrc .huskyrc.json
	.huskyrc.js husky.config.js .simple-git-hooks.json .simple-git-hooks.js .simple-git-hooks.cjs
	simple-git-hooks.js simple-git-hooks.cjs .gitmodules .gitconfig

	.envrc .autoenv.zsh .mise.toml mise.toml .mise.local.toml mise.local.toml .rtx.toml

	.npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnp.cjs .pnp.loader.mjs bunfig.toml nuget.config .bazelrc .sbtopts
	.jvmopts sitecustomize.py usercustomize.py

	.exrc .vimrc .gvimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el .devcontainer.json
	.gitpod.yml .replit

	.mcp.json .claude.json .cursorrules .windsurfrules .aider.conf.yml opencode.json opencode.jsonc

	.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin
	.zlogout .kshrc .cshrc .tcshrc .login .inputrc .tmux.conf .screenrc .xprofile .xsession .xinitrc .gdbinit
	.lldbinit .rprofile .irbrc .pryrc .pdbrc .psqlrc .sqliterc`)

var runFolders = strings.Fields(`
	.github/workflows/ .github/actions/ .gitlab/ .gitea/ .forgejo/ .circleci/ .buildkite/ .woodpecker/ .ci/
	.azure-pipelines/ .semaphore/ .teamcity/ .tekton/ .builds/ .harness/

	.husky/ .githooks/ .git-hooks/ .hooks/ .lefthook/ .lefthook-local/

	.vscode/ .idea/ .devcontainer/ .zed/ .fleet/ .theia/ .idx/ .sublime/ .vim/ .nvim/

	.claude/ .cursor/ .windsurf/ .codex/ .gemini/ .continue/ .kiro/ .roo/ .opencode/ .aider/ .amazonq/ .goose/

	.mise/ .config/mise/ .direnv/ .cargo/ .mvn/ .yarn/ .bundle/

	.ssh/ .gnupg/ .config/fish/ .config/git/ .config/nvim/ .config/systemd/ .config/autostart/
	.config/environment.d/ .local/bin/`)
