// Package archtest holds the tests of the project's structure.
package archtest
