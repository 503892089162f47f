package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
)

// What the server's safety rests on, its key above all, should not lie where
// agents write. So the data folder is by default outside every project: one per
// working folder, in the state folder of the user.

// defaultData is the data folder of a server that is started in a working folder
// without --data. A folder var there that already holds the data of a server goes
// on being used, unless there is one in the state folder: an agent could have
// made var, but nothing in the state folder.
func defaultData(env Lookup, working string) string {
	if real, err := filepath.EvalSymlinks(working); err == nil {
		working = real // one folder has one data folder, whatever it is called
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

// UnusedData is the folder var of the working folder, if it holds the data of a
// server and the server uses its default folder all the same; empty: it does not.
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

// DataFolders are data folders of this user that servers may use: the one that is
// given first, and all in the state folder.
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

// stateFolder is where programs of the user keep what is neither a document nor
// a setting.
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

// ReserveData makes the default data folder of a server that was given another
// with --data, if agents can write to the working folder: they could otherwise
// make a folder var there, which a later server without --data would use.
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
