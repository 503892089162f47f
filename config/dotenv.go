package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// readDotenv reads a file of variables. A missing file has no variables. They
// are not added to the environment of the process, so child processes do not
// get them.
func readDotenv(path string) (Lookup, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	values, err := parseDotenv(path, string(raw))
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}, err
}

var (
	assignment      = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$`)
	trailingComment = regexp.MustCompile(`\s+#.*$`)
)

// parseDotenv reads lines of these forms. Of two lines with the same key, the last
// one counts.
//
//	# comment
//	KEY=as it stands      # comment, after a space
//	KEY='as it stands'
//	KEY="with \n \r \t \" \\ \$"
//	export KEY=value
//
// Variables in values are not expanded, and a value cannot span several lines.
// Errors contain the line number and never the line, because these files hold keys.
func parseDotenv(path, text string) (map[string]string, error) {
	values := map[string]string{}
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		parts := assignment.FindStringSubmatch(line)
		if parts == nil {
			return nil, at(path, number, "not of the form KEY=VALUE")
		}
		value, err := dotenvValue(parts[2])
		if err != nil {
			return nil, at(path, number, "%s: %w", parts[1], err)
		}
		values[parts[1]] = value
	}
	return values, nil
}

func dotenvValue(s string) (string, error) {
	switch {
	case s == "" || s[0] == '#':
		return "", nil
	case s[0] == '\'':
		value, rest, closed := strings.Cut(s[1:], "'")
		if !closed {
			return "", errors.New("the ' is never closed")
		}
		return value, onlyComment(rest)
	case s[0] == '"':
		return doubleQuoted(s[1:])
	}
	return trailingComment.ReplaceAllLiteralString(s, ""), nil
}

var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '$': '$'}

func doubleQuoted(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), onlyComment(s[i+1:])
		case '\\':
			i++
			if i == len(s) {
				continue
			}
			c, ok := escapes[s[i]]
			if !ok {
				return "", fmt.Errorf(`\%c is no escape; write \\ for a backslash`, s[i])
			}
			b.WriteByte(c)
		default:
			b.WriteByte(s[i])
		}
	}
	return "", errors.New(`the " is never closed`)
}

func onlyComment(rest string) error {
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
		return errors.New("something follows the closing quote")
	}
	return nil
}
