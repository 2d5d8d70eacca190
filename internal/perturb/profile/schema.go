package profile

import _ "embed"

// Schema is the JSON Schema of a profile, for editors and other tools. Pommel's own
// reading is stricter: it knows what a schema cannot say.
//
//go:embed profile.schema.json
var Schema []byte
