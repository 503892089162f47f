package tui

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

const pngHead = "\x89PNG\r\n\x1a\n"

// TestImagesAreNamed checks that names of images in a message are found, and that the files are read from the project.
func TestImagesAreNamed(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	for name, content := range map[string]string{"a.png": pngHead + "a", "my shot.PNG": pngHead + "b",
		"text.png": "only text", "large.png": pngHead + strings.Repeat("x", maxImageBytes),
		"half.png": pngHead + strings.Repeat("x", maxImageBytes/2)} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(project, "folder.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	absolute := strings.ReplaceAll(filepath.Join(project, "my shot.PNG"), " ", `\ `)
	for text, want := range map[string][][]byte{
		"nothing, notes.png, @notes.txt and me@a.png": nil,
		"look at @a.png, and at @a.png.":              {[]byte(pngHead + "a")},
		`@my\ shot.PNG then @a.png`:                   {[]byte(pngHead + "b"), []byte(pngHead + "a")},
		"(@" + absolute + ")":                         nil, // does not begin with @
		"see @" + absolute:                            {[]byte(pngHead + "b")},
		"@gone.png":                                   nil,
	} {
		if got, err := ImagesIn(text, project); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q has %d images (%v), want %d", text, len(got), err, len(want))
		}
	}
	for text, want := range map[string]string{"@text.png": "text.png is no PNG, JPEG, GIF, WebP or PDF",
		"@large.png": "large.png has more than 4 MiB", "@a.png @half.png": "",
		"@a.png @half.png @half.png @my\\ shot.PNG @./half.png": "may have 4 MiB in all",
		"@folder.png": "folder.png is not a file"} {
		got, err := ImagesIn(text, project)
		if want == "" && err == nil {
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestImagesArePasted checks that the path of a pasted or dropped image becomes a name in the message. Other texts do
// not change.
func TestImagesArePasted(t *testing.T) {
	t.Parallel()
	for pasted, want := range map[string]string{
		"/home/ann/shot.png":             "@/home/ann/shot.png ",
		"'/home/ann/my shot.JPG' ":       `@/home/ann/my\ shot.JPG `,
		`/home/ann/my\ shot.webp`:        `@/home/ann/my\ shot.webp `,
		"file:///home/ann/my%20shot.gif": `@/home/ann/my\ shot.gif `,
		"/home/ann/notes.txt":            "/home/ann/notes.txt",
		"shot.png":                       "shot.png",
		"https://example.com/shot.png":   "https://example.com/shot.png",
		"/a.png\n/b.png":                 "/a.png\n/b.png",
	} {
		m, _ := inTalk().step(tea.PasteMsg{Content: pasted})
		if m.draft.Value() != want {
			t.Errorf("%q becomes %q, want %q", pasted, m.draft.Value(), want)
		}
	}
	m, _ := press(inTalk(), "what is this? ")
	m, _ = m.step(tea.PasteMsg{Content: "/home/ann/shot.png"})
	_, effects := press(m, "enter")
	sent := effects[0].(submit)
	if sent.input.Content != "what is this? @/home/ann/shot.png" || sent.folder != "/src/app" {
		t.Errorf("sent %#v", sent)
	}
}
