package storetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A node is a word of SQL, in lower case, or the content of a pair of
// parentheses.
type node struct {
	word  string
	group []node
}

// Parameters become ?, and string literals become empty.
var (
	sqlToken  = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|"[^"]*"|[A-Za-z_][\w.]*|[?$][\d%d]*|\d+|::|<>|[<>]=|\S`)
	statement = []string{"select", "insert", "update", "delete", "with"}
	clauses   = []string{"where", "group", "order", "limit", "offset", "having", "window", "returning", "for", "set",
		"on", "join", "left", "right", "full", "inner", "cross"}
)

func parseSQL(text string) []node {
	open := [][]node{nil}
	for _, token := range sqlToken.FindAllString(text, -1) {
		top := len(open) - 1
		switch {
		case strings.HasPrefix(token, "--"):
		case token == "(":
			open = append(open, []node{})
		case token == ")" && top > 0:
			open[top-1] = append(open[top-1], node{group: open[top]})
			open = open[:top]
		case token[0] == '\'':
			open[top] = append(open[top], node{word: "''"})
		case token[0] == '?' || token[0] == '$':
			open[top] = append(open[top], node{word: "?"})
		default:
			open[top] = append(open[top], node{word: strings.ToLower(strings.Trim(token, `"`))})
		}
	}
	return open[0]
}

func split(nodes []node, at ...string) (parts [][]node) {
	start := 0
	for i, n := range nodes {
		if slices.Contains(at, n.word) {
			parts, start = append(parts, nodes[start:i]), i+1
		}
	}
	return append(parts, nodes[start:])
}

func index(nodes []node, word string) int {
	return slices.IndexFunc(nodes, func(n node) bool { return n.word == word })
}

// column returns the index of the list item that begins with a name.
func column(items [][]node, name string) int {
	return slices.IndexFunc(items, func(item []node) bool { return len(item) > 0 && item[0].word == name })
}

// A judgement is the result for one string.
type judgement struct {
	tables  map[string]bool // the tables with a tenant column
	touched []string
	wrong   []string
}

func (j *judgement) complain(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

func judge(text string, tables map[string]bool) *judgement {
	j := &judgement{tables: tables}
	nodes := parseSQL(text)
	if len(nodes) == 0 {
		return j
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case slices.Contains(statement, nodes[0].word):
		j.query(nodes, nil)
	case slices.Contains([]string{"AND", "ORDER", "LIMIT", "RETURNING"}, first): // added to a statement at run time
		if index(nodes, "or") >= 0 || index(nodes, "union") >= 0 || j.names(nodes) != "" {
			j.complain("may widen what it is added to")
		}
	case slices.Contains([]string{"OR", "UNION", "WHERE", "JOIN"}, first):
		j.complain("may widen what it is added to")
	case j.names(nodes) != "":
		j.complain("is about %s and cannot be seen whole: make it a part of a constant", j.names(nodes))
	}
	return j
}

// names returns a table with a tenant that occurs in the place of a table name.
func (j *judgement) names(nodes []node) string {
	for i, n := range nodes {
		if name := j.names(n.group); name != "" {
			return name
		}
		if i > 0 && j.tables[n.word] && slices.Contains([]string{"from", "join", "into", "update"}, nodes[i-1].word) {
			return n.word
		}
	}
	return ""
}

// A level is one SELECT, UPDATE, DELETE or INSERT with its tables.
type level struct {
	tables []*table
	equal  [][2]string // pairs of columns and parameters that must be equal
	outer  *level
}

type table struct {
	name, alias string
	tied        bool // its tenant is bound to a parameter
}

// query judges a statement or a subquery.
func (j *judgement) query(nodes []node, outer *level) {
	if nodes[0].word == "with" {
		for i, n := range nodes {
			if slices.Contains(statement, n.word) && i > 0 {
				j.groups(nodes[:i], outer)
				nodes = nodes[i:]
				break
			}
		}
	}
	for _, part := range split(nodes, "union", "intersect", "except") {
		if len(part) > 0 && part[0].word == "all" {
			part = part[1:]
		}
		switch {
		case len(part) == 0:
		case part[0].word == "insert":
			j.insert(part, outer)
		default:
			j.level(part, outer)
		}
	}
}

// groups judges the subqueries within nodes.
func (j *judgement) groups(nodes []node, outer *level) {
	for _, n := range nodes {
		switch {
		case len(n.group) == 0:
		case slices.Contains(statement, n.group[0].word):
			j.query(n.group, outer)
		default:
			j.groups(n.group, outer)
		}
	}
}

func (j *judgement) level(nodes []node, outer *level) *level {
	l := &level{outer: outer}
	if nodes[0].word == "update" {
		l.add(j, nodes[1:])
		if set := index(nodes, "set"); set >= 0 {
			j.keepsTenant(nodes[set+1:])
		}
	}
	inFrom, join := false, ""
	for i := 1; i < len(nodes); i++ {
		last, rest := nodes[i-1].word, nodes[i+1:]
		switch word := nodes[i].word; word {
		case "from", "join":
			inFrom, join = true, last
			l.add(j, rest)
		case ",":
			if inFrom {
				join = ""
				l.add(j, rest)
			}
		case "on", "where":
			inFrom = inFrom && word == "on"
			l.conditions(rest, word == "on" && slices.Contains([]string{"left", "right", "full", "outer"}, join))
		case "group", "order", "limit", "returning":
			inFrom = false
		}
	}
	l.tie()
	for _, t := range l.tables {
		if !t.tied {
			j.complain("takes rows of %s (%s) whoever's they are", t.name, t.alias)
		}
	}
	j.groups(nodes, l)
	return l
}

// add adds the table at the beginning of nodes, if it has a tenant.
func (l *level) add(j *judgement, nodes []node) {
	for len(nodes) > 0 && (nodes[0].word == "lateral" || nodes[0].word == "only") {
		nodes = nodes[1:]
	}
	if len(nodes) == 0 || !j.tables[nodes[0].word] {
		return
	}
	t := &table{name: nodes[0].word, alias: nodes[0].word}
	if nodes = nodes[1:]; len(nodes) > 1 && nodes[0].word == "as" {
		nodes = nodes[1:]
	}
	if len(nodes) > 0 && nodes[0].word != "" && nodes[0].word != "," && !slices.Contains(clauses, nodes[0].word) {
		t.alias = nodes[0].word
	}
	j.touched = append(j.touched, t.name)
	l.tables = append(l.tables, t)
}

// conditions collects the conditions that all rows must meet. It ignores
// alternatives (OR), and the conditions of an outer join, which keeps its rows
// anyway.
func (l *level) conditions(nodes []node, outer bool) {
	for i, n := range nodes {
		if slices.Contains(clauses, n.word) {
			nodes = nodes[:i]
			break
		}
	}
	if index(nodes, "or") >= 0 || outer {
		return
	}
	for _, c := range split(nodes, "and") {
		if len(c) == 3 && c[1].word == "=" {
			l.equal = append(l.equal, [2]string{c[0].word, c[2].word})
		}
	}
}

// tie marks the tables whose tenant is bound to a parameter, directly or
// through other tables.
func (l *level) tie() {
	for again := true; again; {
		again = false
		for _, e := range l.equal {
			for _, e := range [][2]string{e, {e[1], e[0]}} {
				if t := l.table(e[0]); t != nil && !t.tied && (e[1] == "?" || l.given(e[1])) {
					t.tied, again = true, true
				}
			}
		}
	}
}

// given reports whether a column is the tenant of a tied table. Tables of outer
// levels are tied, or there is a complaint about them already.
func (l *level) given(name string) bool {
	if t := l.table(name); t != nil {
		return t.tied
	}
	for o := l.outer; o != nil; o = o.outer {
		if strings.Contains(name, ".") && o.table(name) != nil {
			return true
		}
	}
	return false
}

// table returns the table whose tenant column has this name.
func (l *level) table(name string) *table {
	alias, col, dotted := strings.Cut(name, ".")
	for _, t := range l.tables {
		if dotted && col == "tenant" && t.alias == alias || name == "tenant" && len(l.tables) == 1 {
			return t
		}
	}
	return nil
}

// insert judges INSERT INTO table (columns) VALUES … or SELECT …
func (j *judgement) insert(nodes []node, outer *level) {
	columns := slices.IndexFunc(nodes, func(n node) bool { return n.group != nil })
	if len(nodes) < 4 || columns < 0 {
		j.complain("does not list the columns it fills")
		return
	}
	into, what := nodes[2].word, nodes[columns+1:]
	tenant := column(split(nodes[columns].group, ","), "tenant")
	if conflict := index(what, "conflict"); conflict > 0 {
		j.conflict(into, what[conflict+1:])
		what = what[:conflict-1]
	}
	if !j.tables[into] {
		j.groups(what, outer)
		return
	}
	j.touched = append(j.touched, into)
	if tenant < 0 || len(what) == 0 {
		j.complain("does not say whose the rows of %s are", into)
		return
	}
	switch what[0].word {
	case "values":
		for _, n := range what {
			if n.group != nil {
				j.isGiven(into, split(n.group, ","), tenant, nil)
			}
		}
		j.groups(what, outer)
	case "select":
		list := what[1:]
		if from := slices.IndexFunc(list, func(n node) bool {
			return n.word == "from" ||
				n.word == "where"
		}); from >= 0 {
			list = list[:from]
		}
		j.isGiven(into, split(list, ","), tenant, j.level(what, outer))
	default:
		j.complain("fills %s in a way that this test does not know", into)
	}
}

func (j *judgement) isGiven(into string, items [][]node, tenant int, l *level) {
	if tenant < len(items) && len(items[tenant]) == 1 {
		if value := items[tenant][0].word; value == "?" || l != nil && l.given(value) {
			return
		}
	}
	j.complain("makes up whose the rows of %s are", into)
}

// conflict judges the part after ON CONFLICT: the changed row must belong to
// the same tenant.
func (j *judgement) conflict(into string, nodes []node) {
	set := index(nodes, "set")
	if set < 0 || !j.tables[into] {
		return
	}
	if column(split(nodes[0].group, ","), "tenant") < 0 {
		j.complain("changes rows of %s that are in the way, whoever's they are", into)
	}
	j.keepsTenant(nodes[set+1:])
}

func (j *judgement) keepsTenant(assignments []node) {
	for i, n := range assignments {
		if slices.Contains([]string{"where", "from", "returning"}, n.word) {
			assignments = assignments[:i]
			break
		}
	}
	if column(split(assignments, ","), "tenant") >= 0 {
		j.complain("gives rows to another tenant")
	}
}
