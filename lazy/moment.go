package lazy

import "runtime"

// graceYields is how often a scope whose computations all wait yields the processor
// before it lets its gatherings go, if computations have begun since it last did: the
// scope's owner may be about to start more. It is a few microseconds' worth, and not
// needed where the owner is known to wait.
const graceYields = 256

// moment is how a [Scope] knows when nobody in it is left who could still ask for
// something. Its fields are guarded by the scope's mutex.
type moment struct {
	parked    int         // computations that wait inside of this package
	holds     int         // who is about to start more
	attending int         // waits by goroutines that are none of the computations: the owner has nothing to add
	fresh     bool        // computations have begun since something departed
	gathered  []departure // what goes when the moment has come
	settling  bool        // some goroutine is in settle
}

// departure is a gathering that waits for its moment.
type departure interface{ depart() }

// Hold keeps the scope's gatherings until release is called, once: for whoever is
// about to start several computations and wants them to share calls.
func (s *Scope) Hold() (release func()) {
	s.mu.Lock()
	s.holds++
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.holds--
		s.mu.Unlock()
		s.settle()
	}
}

// gathering notes what is to depart when the moment has come. Whoever began it is
// about to wait for it, which is when the scope looks again.
func (s *Scope) gathering(d departure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathered = append(s.gathered, d)
}

func (s *Scope) park() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked++
}

func (s *Scope) unpark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked--
}

// attend notes that a goroutine outside of the scope's computations waits for one.
func (s *Scope) attend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attending++
}

func (s *Scope) unattend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attending--
}

// settle lets the gatherings go if the moment has come. It is called, without
// locks, after every change that may have brought it. One goroutine at a time is in
// it; a change that another one makes meanwhile is seen by the first, which looks
// under the lock before it leaves.
func (s *Scope) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settling {
		return
	}
	s.settling = true
	for yields := 0; s.quiet(); yields++ {
		if s.fresh && !s.closed && s.attending == 0 && yields < graceYields {
			s.mu.Unlock()
			runtime.Gosched()
			s.mu.Lock()
			continue
		}
		s.letGo()
		yields = 0
	}
	s.settling = false
}

// quiet says whether something is gathered and nobody can add to it. In a closed
// scope nothing can be launched any longer, and those who wait are to be told.
func (s *Scope) quiet() bool {
	return len(s.gathered) > 0 && (s.closed || s.parked == s.running && s.holds == 0)
}

// letGo departs what is gathered. The caller holds s.mu, which is released
// meanwhile.
func (s *Scope) letGo() {
	gathered := s.gathered
	s.gathered, s.fresh = nil, false
	s.mu.Unlock()
	defer s.mu.Lock()
	for _, d := range gathered {
		d.depart()
	}
}
