package child

// CPUs are processors, by their numbers.
type CPUs []int

// Split divides them into the first n and the others. A single one is in both.
func (all CPUs) Split(n int) (first, others CPUs) {
	if len(all) == 1 {
		return all, all
	}
	return all[:n], all[n:]
}
