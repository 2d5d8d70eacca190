// Package task reads task files and turns a task and a seed into an instance.
//
// A Spec is what the author wrote: pure data, the same on every host. An
// Instance is a Spec with its parameters drawn for one seed: texts are filled
// in, SQL has its values bound. Suites are folders of task files.
//
// # Parameters
//
// `${name}` or `${name.column}` in a text is replaced by the value. In SQL it
// becomes a bound parameter, as if a quoted literal of unknown type stood in
// its place: PostgreSQL infers the type from the context, and where it cannot
// the author writes a cast (`${total}::int`). A value is never pasted into SQL.
//
// # Seeds
//
// Each parameter draws from its own stream, keyed by the task's id, the
// parameter's name and the seed, so adding a parameter never changes another.
package task
