package dialect

import (
	"bytes"
	"encoding/base64"
	"strings"

	"parley"
)

// Limits of one input with images.
const (
	maxImages     = 4
	MaxImageBytes = 4 << 20 // of all of them
	// MaxMessage has room for them as base64, and for a text that is escaped.
	MaxMessage = 2*parley.MaxContent + MaxImageBytes/3*4 + 64<<10
)

// ReadImages reads the field images of a message.
func ReadImages(o Object) ([]parley.Image, error) {
	var given []string
	if err := o.Into("images", &given, "a list of base64 strings or data URLs"); err != nil {
		return nil, Invalid("%s", err)
	}
	return Images(given)
}

// Images reads the images of an input: data URLs or bare base64. The type of an image is seen in its data, not taken
// from the URL.
func Images(given []string) (list []parley.Image, err error) {
	if len(given) > maxImages {
		return nil, Invalid("images: at most %d", maxImages)
	}
	all := 0
	for i, s := range given {
		if rest, isURL := strings.CutPrefix(s, "data:"); isURL {
			head, encoded, _ := strings.Cut(rest, ",")
			if !strings.HasSuffix(head, ";base64") {
				return nil, Invalid("images[%d] must be a data URL in base64", i)
			}
			s = encoded
		}
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(data) == 0 {
			return nil, Invalid("images[%d] is not base64", i)
		}
		if all += len(data); all > MaxImageBytes {
			return nil, parley.Errorf(parley.CodeTooLarge, "images: more than %d bytes in all.", MaxImageBytes)
		}
		kind := imageType(data)
		if kind == "" {
			return nil, Invalid("images[%d] is no PNG, JPEG, GIF or WebP", i)
		}
		list = append(list, parley.Image{Type: kind, Data: data})
	}
	return list, nil
}

func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
