// Package yamlfile reads the YAML files that people write for Pommel, strictly.
//
// An unknown key, a value of the wrong type or a missing required key is an
// error that names file, line, column and field path, says what was expected
// and, for a misspelt key, what was probably meant. All mistakes of a file are
// reported at once. A parsed File stays available so that later checks of
// meaning (a port used twice, a table that does not exist) can point at the
// very place with File.Errorf.
//
// Struct fields are matched by their `yaml` tag: `yaml:"name"`, with the
// option `required` for a key that must be there, `yaml:"-"` for a field that
// is not part of the file. A type decodes itself by implementing Decoder or
// encoding.TextUnmarshaler.
package yamlfile
