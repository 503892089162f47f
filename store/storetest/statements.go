package storetest

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Statements reads the SQL in the source of a package. It fails each statement
// that touches a table with a tenant column, as the migrations define it,
// without a condition on the tenant. crossing lists the statements that may
// cross tenants, with the reasons.
//
// A statement is a constant that is used as a value. Parts that are added at
// run time may only narrow it; so a statement must have its tenant condition
// before anything is added.
func Statements(t *testing.T, source, migrations fs.FS, crossing map[string]string) {
	tables, err := tenantTables(migrations)
	if err != nil {
		t.Fatal(err)
	}
	excused, touched := map[string]bool{}, map[string]bool{}
	for text := range crossing {
		excused[oneLine(text)] = false
	}
	for _, c := range constants(t, source) {
		j := judge(c.text, tables)
		for _, table := range j.touched {
			touched[table] = true
		}
		if _, ok := excused[oneLine(c.text)]; ok && len(j.wrong) > 0 {
			excused[oneLine(c.text)] = true
			continue
		}
		for _, wrong := range j.wrong {
			t.Errorf("%s: %s:\n%s", c.at, wrong, c.text)
		}
	}
	for text, used := range excused {
		if !used {
			t.Errorf("is excused for crossing tenants, and does not, or is not there any more:\n%s", text)
		}
	}
	for table := range tables {
		if !touched[table] {
			t.Errorf("no statement about %s was found: they are not where this test looks", table)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

type found struct {
	at   token.Position
	text string
}

// constants lists the strings that a package uses as values. Each string is
// whole: for a + b with constant a and b, the list has only the sum. The
// declaration of a constant does not count as a use.
func constants(t *testing.T, source fs.FS) (list []found) {
	t.Helper()
	set := token.NewFileSet()
	names, err := fs.Glob(source, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Types of other packages are not needed to evaluate the constants of this
	// one.
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	lenient := &types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = lenient.Check("store", set, files, info) // the errors about missing imports do not matter
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				return n.Tok != token.CONST && n.Tok != token.IMPORT
			case ast.Expr:
				text, ok := stringOf(n, info)
				if ok {
					list = append(list, found{set.Position(n.Pos()), text})
				}
				return !ok
			}
			return true
		})
	}
	return list
}

func stringOf(e ast.Expr, info *types.Info) (string, bool) {
	if v := info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v), true
	}
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, err := strconv.Unquote(lit.Value)
		return text, err == nil
	}
	return "", false
}

type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// tenantTables returns the tables that have a tenant column after all
// migrations.
func tenantTables(migrations fs.FS) (map[string]bool, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	tables := map[string]bool{}
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return nil, err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, statement := range split(parseSQL(up), ";") {
			applyDDL(tables, statement)
		}
	}
	if len(tables) == 0 {
		return nil, errors.New("the migrations make no table with a tenant")
	}
	return tables, nil
}

func applyDDL(tables map[string]bool, statement []node) {
	if len(statement) < 3 || statement[1].word != "table" {
		return
	}
	name := statement[2].word
	switch verb := statement[0].word; {
	case verb == "create" && len(statement) > 3:
		if column(split(statement[3].group, ","), "tenant") >= 0 {
			tables[name] = true
		}
	case verb == "drop":
		delete(tables, name)
	case verb == "alter" && len(statement) > 5 && statement[3].word == "rename" && statement[4].word == "to":
		if tables[name] {
			delete(tables, name)
			tables[statement[5].word] = true
		}
	case verb == "alter" && len(statement) > 5 && statement[3].word == "add" && statement[5].word == "tenant":
		tables[name] = true
	}
}
