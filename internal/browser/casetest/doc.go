// Package casetest holds pages that have broken browser drivers, and the tests that
// Pommel's does right by them: fixed bars, veils, frames, dialogs, dates, text that is
// not text, pages that never come to rest, tabs that die.
//
// Every page writes what truly happened into <output id=log>. A test reads that by a
// session of its own, not through the package it tests.
package casetest
