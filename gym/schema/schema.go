// Package schema holds the JSON Schema of what agents see, for tools that read
// observations or recorded episodes.
package schema

import _ "embed"

// Observation is the JSON Schema of an observation.
//
//go:embed observation.schema.json
var Observation []byte
