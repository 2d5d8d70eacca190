// Package schema holds the JSON Schema of world.yaml, for editors. The loader checks more.
package schema

import _ "embed"

// World is the schema.
//
//go:embed world.schema.json
var World []byte
