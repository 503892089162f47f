package tui

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley/client"
)

// look performs an effect whose result is a message for the model.
func (l *serverLink) look(f effect) (tea.Msg, error) {
	switch f := f.(type) {
	case list:
		rows, err := l.list(f)
		return listedMsg{f, rows}, err
	case complete:
		find := l.files
		if strings.HasPrefix(f.word, "/") {
			find = l.skills
		}
		found, err := find(f)
		return completedMsg{f.word, found}, err
	case fork:
		s, err := l.Fork(l.ctx, f.session, client.Fork{})
		return forkedMsg{s.ID}, err
	case export:
		return exportedMsg{f.path}, writeNew(f.path, f.text)
	}
	return nil, l.answer(f)
}

const mostSessions = 200

func (l *serverLink) list(f list) (rows []pickRow, err error) {
	switch f.kind {
	case pickSession:
		sessions, err := l.Sessions(l.ctx, client.SessionQuery{Search: f.filter, Limit: mostSessions})
		for _, s := range sessions {
			rows = append(rows, pickRow{string(s.ID), firstOf(s.Title, "(no title)"),
				s.Agent + ", " + s.UpdatedAt.Local().Format(time.DateTime) + ", " + string(s.Status)})
		}
		return rows, err
	case pickAgent:
		agents, err := l.Agents(l.ctx, f.project)
		for _, a := range agents {
			rows = append(rows, pickRow{a.ID, firstOf(a.Name, a.ID), a.Description})
		}
		return rows, err
	case pickModel:
		models, err := l.Models(l.ctx)
		for _, m := range models {
			rows = append(rows, pickRow{m.ID, m.ID, m.Provider})
		}
		return rows, err
	case pickProject:
		projects, err := l.Projects(l.ctx)
		for _, p := range projects {
			rows = append(rows, pickRow{p.Root, p.Name, p.Root})
		}
		return rows, err
	}
	return nil, fmt.Errorf("nothing lists %s", f.kind)
}

// files returns the files and folders of the project whose paths begin with a text.
func (l *serverLink) files(f complete) (found []string, err error) {
	path := strings.TrimPrefix(f.word, "@")
	folder := path[:strings.LastIndex(path, "/")+1]
	entries, err := l.Folder(l.ctx, f.project, strings.TrimSuffix(folder, "/"))
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
		return nil, nil
	}
	for _, entry := range entries {
		name := "@" + folder + entry.Name
		if entry.IsDir {
			name += "/"
		}
		if strings.HasPrefix(name, f.word) {
			found = append(found, name)
		}
	}
	return found, err
}

// skills returns the skills for users whose names begin with a text.
func (l *serverLink) skills(f complete) (found []string, err error) {
	skills, err := l.Skills(l.ctx, f.project)
	for _, s := range skills {
		if name := "/" + s.Name; s.People && strings.HasPrefix(name, f.word) {
			found = append(found, name)
		}
	}
	return found, err
}

// writeNew writes a file that must not exist. The file contains the conversation, so only its owner can read it.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// edit opens the user's editor for a text. The editor has the terminal meanwhile.
func (e *edge) edit(f editor) tea.Cmd {
	folder, err := os.MkdirTemp("", "parley")
	if err == nil {
		err = writeNew(filepath.Join(folder, "message.md"), f.text)
	}
	if err != nil {
		return func() tea.Msg { return refusedMsg{f, err} }
	}
	path := filepath.Join(folder, "message.md")
	program := firstOf(e.env("VISUAL"), e.env("EDITOR"), "vi")
	return tea.ExecProcess(exec.Command("sh", "-c", program+` "$1"`, "sh", path), func(err error) tea.Msg {
		defer os.RemoveAll(folder)
		raw, failed := os.ReadFile(path)
		if err = errors.Join(err, failed); err != nil {
			return refusedMsg{f, fmt.Errorf("the editor %s failed: %w", program, err)}
		}
		return editedMsg{string(raw)}
	})
}
