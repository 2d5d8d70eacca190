// Package stream is the source of randomness of perturbations: one stream for each
// seed, rule and decision point, so that nothing that is drawn at one place can shift
// what is drawn at another.
//
// # Algorithm
//
// It is written down here, and not taken from a library, so that plans stay the same
// with every version of every library. All integers are 64 bit, unsigned, wrapping.
//
//	key   = SHA-256(len("pommel perturbation 1") | "pommel perturbation 1" | len(rule) | rule | seed | point)
//	        lengths, seed and point as 8 bytes, big endian
//	state = the first 8 bytes of key, big endian
//	next: state += 0x9E3779B97F4A7C15
//	      z = state
//	      z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
//	      z = (z ^ z>>27) * 0x94D049BB133111EB
//	      result = z ^ z>>31                                    (SplitMix64)
//	Float:  next >> 11, times 2^-53
//	Int(n): the high half of the 128-bit product of next and n
package stream

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

const domain = "pommel perturbation 1"

// Stream is a sequence of random numbers. It is not safe for concurrent use.
type Stream struct{ state uint64 }

// New is the stream of a rule at one of its decision points.
func New(seed int64, rule string, point int) *Stream {
	h := sha256.New()
	number := func(v uint64) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	for _, part := range []string{domain, rule} {
		number(uint64(len(part)))
		h.Write([]byte(part))
	}
	number(uint64(seed))
	number(uint64(point))
	return &Stream{state: binary.BigEndian.Uint64(h.Sum(nil))}
}

// Next is the next 64 bits.
func (s *Stream) Next() uint64 {
	s.state += 0x9E3779B97F4A7C15
	z := s.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Float is uniform in [0, 1).
func (s *Stream) Float() float64 { return float64(s.Next()>>11) / (1 << 53) }

// Int is uniform in 0..n-1; n must be above 0.
func (s *Stream) Int(n int) int {
	hi, _ := bits.Mul64(s.Next(), uint64(n))
	return int(hi)
}
