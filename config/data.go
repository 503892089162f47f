package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
)

// Agents must not be able to write the data folder, above all the server's key
// in it. So the default data folder is outside every project: one for each
// working folder, in the state folder of the user.

// defaultData returns the data folder of a server that is started in a working
// folder without --data. If the working folder has a folder var with data of a
// server, that one is used, unless the state folder has one: an agent could have
// created var, but nothing in the state folder.
func defaultData(env Lookup, working string) string {
	if real, err := filepath.EvalSymlinks(working); err == nil {
		working = real // a working folder has one data folder, also when reached through a link
	}
	old := filepath.Join(working, "var")
	state, ok := stateFolder(env)
	if !ok {
		return old
	}
	sum := sha256.Sum256([]byte(working))
	folder := filepath.Join(state, "parley", filepath.Base(working)+"-"+hex.EncodeToString(sum[:6]))
	if !isFolder(folder) && holdsData(old) {
		return old
	}
	return folder
}

// UnusedData returns the folder var of the working folder, if it holds data of a
// server and the server uses its default folder nevertheless. Otherwise it is
// empty.
func UnusedData(env Lookup, data string) string {
	working, err := os.Getwd()
	if err != nil {
		return ""
	}
	if old := filepath.Join(working, "var"); data == defaultData(env, working) && data != old && holdsData(old) {
		return old
	}
	return ""
}

// DataFolders returns the data folders that servers of this user may use: the given
// one, and all in the state folder.
func DataFolders(env Lookup, data string) []string {
	folders := []string{data}
	if state, ok := stateFolder(env); ok {
		there, _ := filepath.Glob(filepath.Join(state, "parley", "*")) // the pattern is well-formed
		folders = append(folders, there...)
	}
	return folders
}

func holdsData(folder string) bool {
	for _, name := range []string{"parley.db", "parley.key"} {
		if info, err := os.Lstat(filepath.Join(folder, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// stateFolder returns the folder for the state of the user's programs: data
// that is neither a document nor a setting.
func stateFolder(env Lookup) (string, bool) {
	get := func(name string) string {
		value, _ := env(name)
		if !filepath.IsAbs(value) {
			return ""
		}
		return value
	}
	if folder := get("XDG_STATE_HOME"); folder != "" {
		return folder, true
	}
	switch home := get("HOME"); {
	case runtime.GOOS == "windows":
		folder := get("LOCALAPPDATA")
		return folder, folder != ""
	case home == "":
		return "", false
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support"), true
	default:
		return filepath.Join(home, ".local", "state"), true
	}
}

// ReserveData creates the default data folder if a server has another one with
// --data and agents can write to the working folder. Otherwise an agent could
// create a folder var there, which a later server without --data would use.
func ReserveData(env Lookup, workspace string) error {
	working, err := os.Getwd()
	if err == nil {
		working, err = filepath.EvalSymlinks(working)
	}
	if err == nil {
		workspace, err = filepath.EvalSymlinks(workspace)
	}
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(workspace, working)
	folder := defaultData(env, working)
	if err != nil || !filepath.IsLocal(inside) || filepath.Dir(folder) == working {
		return nil
	}
	return os.MkdirAll(folder, 0o700)
}
