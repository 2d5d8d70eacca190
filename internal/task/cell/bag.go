package cell

// Pairs finds a largest set of pairs between n seen and k wanted things, each used once,
// where same says which fit together. pairs[j] is the seen thing of wanted thing j, or -1.
// Loose comparisons make it a search: what fits two wanted things must go to the one that
// fits nothing else.
func Pairs(n, k int, same func(seen, wanted int) (bool, error)) (pairs []int, err error) {
	fits := make([][]int, k)
	for j := range k {
		for i := range n {
			ok, err := same(i, j)
			if err != nil {
				return nil, err
			}
			if ok {
				fits[j] = append(fits[j], i)
			}
		}
	}
	owner := make([]int, n)
	for i := range owner {
		owner[i] = -1
	}
	var place func(j int, tried []bool) bool
	place = func(j int, tried []bool) bool {
		for _, i := range fits[j] {
			if tried[i] {
				continue
			}
			tried[i] = true
			if owner[i] < 0 || place(owner[i], tried) {
				owner[i] = j
				return true
			}
		}
		return false
	}
	for j := range k {
		place(j, make([]bool, n))
	}
	pairs = make([]int, k)
	for j := range pairs {
		pairs[j] = -1
	}
	for i, j := range owner {
		if j >= 0 {
			pairs[j] = i
		}
	}
	return pairs, nil
}

// Bag says whether n seen things and n wanted things fit one to one.
func Bag(n int, same func(seen, wanted int) (bool, error)) (bool, error) {
	pairs, err := Pairs(n, n, same)
	if err != nil {
		return false, err
	}
	for _, i := range pairs {
		if i < 0 {
			return false, nil
		}
	}
	return true, nil
}
