// Package world turns a world.yaml into a running, resettable stack: a database, an
// application and a browser in one sandbox.
//
//	spec, err := world.Load(dir)                       // the file, checked
//	image, err := world.BuildImage(ctx, spec, report)  // built once per content, cached
//	w, err := world.Start(ctx, image, report)          // one running copy
//
// A Driver starts worlds and puts them back to where they were when they started; a Pool
// keeps a number of worlds ready. A World that loses one of its processes is lost as a
// whole: Lost is closed and Cause says what happened. It is then only good for Close or
// a reset.
package world
