package lazy

// SetYield makes b call yield, instead of yielding the processor, while it collects.
func (b *Batch[K, V]) SetYield(yield func()) { b.yield = func(func() int) { yield() } }
