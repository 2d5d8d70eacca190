package rewind

// supported says whether there is machine code for this architecture.
const supported = true
