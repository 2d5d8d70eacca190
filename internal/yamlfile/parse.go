package yamlfile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxDepth and maxNodes end alias bombs and anchors that contain themselves.
	maxDepth = 64
	maxNodes = 1 << 20
)

// File is a parsed file: its values and where they stand.
type File struct {
	// Path is the name that errors show.
	Path string
	Root *Node

	byPath map[string]*Node
}

// Parse reads one YAML document.
func Parse(path string, data []byte) (*File, error) {
	f := &File{Path: path, byPath: map[string]*Node{}}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, f.syntaxError(err)
	}
	var body ast.Node
	for _, d := range tree.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			return nil, Errors{f.errorAt(position(d.Body), "", "a second document starts here; one file holds one document")}
		}
		body = d.Body
	}
	if body == nil {
		return nil, Errors{f.errorAt(Pos{1, 1}, "", "the file is empty")}
	}
	c := converter{file: f, anchors: map[string]ast.Node{}}
	root := c.node(body, "", 0)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	f.Root = root
	return f, nil
}

// Load reads and decodes the file at path into out, a pointer.
func Load(path string, out any) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read yaml file: %w", err)
	}
	f, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	return f, f.Decode(out)
}

// Decode reads data, the content of the file at path, into out, a pointer.
func Decode(path string, data []byte, out any) error {
	f, err := Parse(path, data)
	if err != nil {
		return err
	}
	return f.Decode(out)
}

// Decode reads the file into out, a pointer.
func (f *File) Decode(out any) error { return decodeNode(f.Root, out) }

// Node is the value at a path such as services[1].ready, or nil.
func (f *File) Node(path string) *Node {
	if path == "" {
		return f.Root
	}
	return f.byPath[path]
}

// Pos is where the value at path stands. A path that the file does not hold has the
// position of its nearest parent that exists: a missing key is reported at its mapping.
func (f *File) Pos(path string) Pos {
	for {
		if n := f.Node(path); n != nil {
			return n.Pos
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return f.Root.Pos
		}
		path = path[:cut]
	}
}

// Errorf makes an error that points at the value at path.
func (f *File) Errorf(path, format string, args ...any) *Error {
	return f.errorAt(f.Pos(path), path, format, args...)
}

func (f *File) errorAt(pos Pos, path, format string, args ...any) *Error {
	return &Error{File: f.Path, Pos: pos, Path: path, Msg: fmt.Sprintf(format, args...)}
}

func (f *File) syntaxError(err error) error {
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &at) {
		return Errors{f.errorAt(Pos{}, "", "not valid YAML: %v", err)}
	}
	return Errors{f.errorAt(tokenPos(at.GetToken()), "", "not valid YAML: %s", at.GetMessage())}
}

func tokenPos(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{}
	}
	return Pos{t.Position.Line, t.Position.Column}
}

// position is where a reader would say that a value starts. A block mapping's own
// token is the colon of its first key, so its first key is taken.
func position(n ast.Node) Pos {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return position(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(v.Key)
	case *ast.AnchorNode:
		return position(v.Value)
	case *ast.TagNode:
		return tokenPos(v.Start)
	case *ast.LiteralNode:
		return tokenPos(v.Start)
	}
	return tokenPos(n.GetToken())
}

// converter turns the library's syntax tree into Nodes.
type converter struct {
	file    *File
	anchors map[string]ast.Node
	count   int
	errs    Errors
}

func (c *converter) fail(n ast.Node, path, format string, args ...any) *Node {
	c.errs = append(c.errs, c.file.errorAt(position(n), path, format, args...))
	return &Node{Kind: Null, Path: path, file: c.file}
}

func (c *converter) node(n ast.Node, path string, depth int) *Node {
	if n == nil {
		return c.add(&Node{Kind: Null, Path: path})
	}
	if c.count++; depth > maxDepth || c.count > maxNodes {
		if len(c.errs) == 0 {
			return c.fail(n, path, "nested too deeply or too large once its aliases are replaced")
		}
		return &Node{Kind: Null, Path: path, file: c.file}
	}
	switch v := n.(type) {
	case *ast.AnchorNode:
		c.anchors[v.Name.GetToken().Value] = v.Value
		return c.node(v.Value, path, depth+1)
	case *ast.AliasNode:
		target, ok := c.anchors[v.Value.GetToken().Value]
		if !ok {
			return c.fail(n, path, "no anchor &%s comes before this alias", v.Value.GetToken().Value)
		}
		return c.node(target, path, depth+1)
	case *ast.TagNode:
		return c.fail(n, path, "YAML tags such as %s are not used here; write the plain value", v.Start.Value)
	case *ast.MappingNode:
		return c.mapping(v, v.Values, path, depth)
	case *ast.MappingValueNode:
		return c.mapping(v, []*ast.MappingValueNode{v}, path, depth)
	case *ast.SequenceNode:
		out := c.add(&Node{Kind: List, Pos: position(v), Path: path})
		for i, item := range v.Values {
			out.Items = append(out.Items, c.node(item, joinIndex(path, i), depth+1))
		}
		return out
	}
	return c.scalar(n, path)
}

func (c *converter) scalar(n ast.Node, path string) *Node {
	out := &Node{Pos: position(n), Path: path}
	switch v := n.(type) {
	case *ast.NullNode:
		out.Kind = Null
	case *ast.BoolNode:
		out.Kind, out.Text = Bool, v.Token.Value
	case *ast.IntegerNode:
		out.Kind, out.Text = Int, v.Token.Value
	case *ast.FloatNode:
		out.Kind, out.Text = Float, v.Token.Value
	case *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = Float, n.GetToken().Value
	case *ast.StringNode:
		out.Kind, out.Text = String, v.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = String, v.Value.Value
	default:
		return c.fail(n, path, "a %s cannot stand here", n.Type())
	}
	return c.add(out)
}

func (c *converter) mapping(n ast.Node, values []*ast.MappingValueNode, path string, depth int) *Node {
	out := c.add(&Node{Kind: Map, Pos: position(n), Path: path})
	seen := map[string]Pos{}
	for _, kv := range values {
		if kv.Key.IsMergeKey() {
			c.fail(kv.Key, path, "merge keys (<<) are not used here; write the keys out")
			continue
		}
		key := kv.Key.GetToken().Value
		at := position(kv.Key)
		if first, dup := seen[key]; dup {
			c.fail(kv.Key, joinKey(path, key), "the key stands here a second time; first on line %d", first.Line)
			continue
		}
		seen[key] = at
		child := joinKey(path, key)
		val := c.node(kv.Value, child, depth+1)
		if val.Pos == (Pos{}) {
			val.Pos = at
		}
		out.Entries = append(out.Entries, Entry{Key: key, KeyPos: at, Value: val})
	}
	return out
}

func (c *converter) add(n *Node) *Node {
	n.file = c.file
	c.file.byPath[n.Path] = n
	return n
}
