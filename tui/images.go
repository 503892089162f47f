package tui

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
)

// An image or a PDF document is attached to a message by the name of its file: @shot.png. Spaces in the name need
// backslashes.

// imageKinds are the types that the server accepts, as detected from the first bytes of a file.
var imageKinds = []string{"image/png", "image/jpeg", "image/gif", "image/webp", parley.TypePDF}

const maxImageBytes = 4 << 20 // total size of the images of a message; the server has the same limit

// namesImage reports whether a file name is that of an image.
func namesImage(path string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"},
		strings.ToLower(filepath.Ext(path)))
}

// imagesNamed returns the file names in a text that are those of images.
func imagesNamed(text string) (paths []string) {
	const escaped = "\x00"
	for _, word := range strings.Fields(strings.ReplaceAll(text, `\ `, escaped)) {
		path, ok := strings.CutPrefix(strings.ReplaceAll(word, escaped, " "), "@")
		if path = strings.TrimRight(path, ".,;:!?)"); ok && namesImage(path) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// ImagesIn reads the images named in a message. Names are relative to the folder of the project if it is on this
// machine, otherwise to the current folder. A name without a file is only text.
func ImagesIn(text, project string) (images [][]byte, err error) {
	all := 0
	for _, path := range imagesNamed(text) {
		data, err := readImage(path, project)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if all += len(data); err == nil && all > maxImageBytes {
			err = fmt.Errorf("the images of a message may have %d MiB in all, and with %s they have more",
				maxImageBytes>>20, path)
		}
		if err != nil {
			return nil, err
		}
		images = append(images, data)
	}
	return images, nil
}

func readImage(path, project string) ([]byte, error) {
	if filepath.IsAbs(path) {
		return ReadImage(path)
	}
	if filepath.IsAbs(project) {
		if data, err := ReadImage(filepath.Join(project, path)); !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return ReadImage(path)
}

// ReadImage reads a file that must be an image.
func ReadImage(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImageBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxImageBytes:
		return nil, fmt.Errorf("%s has more than %d MiB, which is the most that a message takes", path,
			maxImageBytes>>20)
	case !slices.Contains(imageKinds, http.DetectContentType(data)):
		return nil, fmt.Errorf("%s is no PNG, JPEG, GIF, WebP or PDF", path)
	}
	return data, nil
}

// pastedImage returns the name for a message if the pasted text is the path of an image, otherwise "". Terminals paste
// the path of a dropped file.
func pastedImage(text string) string {
	path := strings.TrimSpace(text)
	if u, err := url.Parse(path); err == nil && u.Scheme == "file" {
		path = u.Path
	} else if n := len(path) - 1; n > 0 && (path[0] == '\'' || path[0] == '"') && path[n] == path[0] {
		path = path[1:n]
	} else {
		path = strings.ReplaceAll(path, `\ `, " ")
	}
	if !filepath.IsAbs(path) || !namesImage(path) || strings.ContainsAny(path, "\n\r\t") {
		return ""
	}
	return "@" + strings.ReplaceAll(path, " ", `\ `) + " "
}

// withImages attaches the images that the text names.
func (f submit) withImages() (submit, error) {
	images, err := ImagesIn(f.input.Content, f.folder)
	f.input.Images = images
	return f, err
}
