// Package schema holds the JSON Schema of task files, for editors and other tools.
// Pommel's own reading is stricter: it knows what a schema cannot say.
package schema

import _ "embed"

// Task is the JSON Schema of a task file.
//
//go:embed task.schema.json
var Task []byte
