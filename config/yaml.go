package config

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// at returns an error about a line of a file.
func at(path string, line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", path, line, fmt.Errorf(format, args...))
}

// A document is a YAML file that contains one mapping or nothing.
type document struct {
	path    string
	body    ast.Node
	entries []entry // entries of inner mappings follow their parent
}

type entry struct {
	key    string // full path, such as limits.turns
	line   int
	scalar bool
	text   string // value of a scalar
}

// parseYAML rejects keys without a value, because it cannot know whether "tools:"
// means an empty list or the default. It also rejects tags, anchors, aliases and
// merge keys, so that every value is under its key.
func parseYAML(path string, raw []byte) (document, error) {
	doc := document{path: path}
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return doc, doc.explain(err)
	}
	for _, part := range file.Docs {
		switch {
		case part.Body == nil || part.Body.Type() == ast.CommentType:
			continue
		case doc.body != nil:
			return doc, at(path, part.Body.GetToken().Position.Line, "a second document begins here; there may be one")
		}
		doc.body = part.Body
		if err := doc.collect("", part.Body); err != nil {
			return doc, err
		}
	}
	return doc, nil
}

func (d *document) collect(prefix string, node ast.Node) error {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		return at(d.path, node.GetToken().Position.Line, "lines of the form KEY: VALUE are wanted here")
	}
	for it := mapping.MapRange(); it.Next(); {
		e := entry{key: prefix + it.Key().GetToken().Value, line: it.Key().GetToken().Position.Line}
		if it.Key().IsMergeKey() {
			return at(d.path, e.line, "<< is not supported; write the keys themselves")
		}
		var inner ast.Node
		switch value := it.Value().(type) {
		case *ast.TagNode, *ast.AnchorNode, *ast.AliasNode:
			return at(d.path, e.line, "%s has a tag, an anchor or an alias; write the value itself", e.key)
		case *ast.NullNode:
			return at(d.path, e.line, "%s has no value; give it one or leave it out", e.key)
		case *ast.LiteralNode:
			e.scalar, e.text = true, value.Value.Value
		case ast.ScalarNode:
			e.scalar, e.text = true, value.GetToken().Value
		case ast.MapNode:
			inner = it.Value()
		}
		d.entries = append(d.entries, e)
		if inner != nil {
			if err := d.collect(e.key+".", inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode fills a struct and rejects unknown keys.
func (d document) decode(into any) error {
	if d.body == nil {
		return nil
	}
	return d.explain(yaml.NodeToValue(d.body, into, yaml.Strict()))
}

// line returns the line of a key, or the first line if there is no such key.
func (d document) line(key string) int {
	for _, e := range d.entries {
		if e.key == key {
			return e.line
		}
	}
	return 1
}

// text returns the value of a key if it is a scalar.
func (d document) text(key string) string {
	for _, e := range d.entries {
		if e.key == key {
			return e.text
		}
	}
	return ""
}

// explain shortens the parser's errors, which quote the source, to one line. It
// describes expected types without names of Go types.
func (d document) explain(err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil {
		return err
	}
	message := e.GetMessage()
	switch e := e.(type) {
	case *yaml.TypeError:
		message = wanted(e.DstType.Kind())
	case *yaml.UnexpectedNodeTypeError:
		message = wanted(map[ast.NodeType]reflect.Kind{ast.SequenceType: reflect.Slice,
			ast.MappingType: reflect.Struct}[e.Expected])
	}
	return at(d.path, e.GetToken().Position.Line, "%s", message)
}

func wanted(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false is wanted here"
	case reflect.Int, reflect.Int64:
		return "a whole number is wanted here"
	case reflect.Float64:
		return "a number is wanted here"
	case reflect.Slice:
		return "a list is wanted here"
	case reflect.Struct:
		return "lines of the form KEY: VALUE are wanted here"
	}
	return "text is wanted here"
}
