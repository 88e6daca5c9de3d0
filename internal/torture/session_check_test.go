package torture_test

import (
	"fmt"
	"slices"
)

// checkVisits returns an error if the observations of clients contradict a promise about sessions. A fault that loses
// writes excuses only the loss of writes that it may have lost.
func checkVisits(requests []request, outages []outage) error {
	ofVisit, ofUser := make(map[*visit]*history), make(map[string][]request)
	for _, r := range requests {
		if r.ends() {
			ofUser[r.user] = append(ofUser[r.user], r)
		}
	}
	for _, r := range requests {
		h := ofVisit[r.visit]
		if h == nil {
			h = &history{outages: outages, ends: slices.DeleteFunc(slices.Clone(ofUser[r.user]), func(end request) bool {
				return end.visit != r.visit && end.path != "POST /revoke"
			})}
			ofVisit[r.visit] = h
		}
		if r.path == "POST /add" {
			h.adds = append(h.adds, r)
		}
	}
	for _, check := range []func(*history, request) error{
		(*history).crossed, (*history).half, (*history).revived, (*history).renewed, (*history).lost, (*history).invented,
	} {
		for _, r := range requests {
			if r.status != 200 {
				continue
			}
			if err := check(ofVisit[r.visit], r); err != nil {
				return fmt.Errorf("%s: %s, %d to %d: %w (faults: %v)", r.user, r.path, r.sent, r.received, err, outages)
			}
		}
	}
	return nil
}

// history is what happened to one session.
type history struct {
	adds    []request
	ends    []request // including revocations of all sessions of the user
	outages []outage
}

// crossed checks that a request found its own user's session.
func (h *history) crossed(r request) error {
	if r.Exists && (r.User != r.user || r.Owner != r.user) {
		return fmt.Errorf("the session of another user: %q, %q", r.User, r.Owner)
	}
	return nil
}

// half checks that each commit has changed either all fields or no field.
func (h *history) half(r request) error {
	if r.Left != r.Right {
		return fmt.Errorf("half a commit: %d and %d", r.Left, r.Right)
	}
	return nil
}

// revived checks that an ended session does not come back.
func (h *history) revived(r request) error {
	if !r.Exists {
		return nil
	}
	for _, end := range h.ends {
		if end.status != 200 || !end.Exists || end.received >= r.sent || h.mayLose(r.shard, end.sent, end.received) {
			continue
		}
		// A revocation ends the sessions that were in the user's index when it began.
		if end.visit == r.visit || r.login[1] < end.sent && !h.mayLose(r.userShard, r.login[0], r.login[1]) {
			return fmt.Errorf("it exists after %s, %d to %d", end.path, end.sent, end.received)
		}
	}
	return nil
}

// lost checks that a session has every acknowledged write, and exists until it is ended.
func (h *history) lost(r request) error {
	if !r.Exists {
		if h.renewedBefore(r) {
			return nil
		}
		ended := slices.ContainsFunc(h.ends, func(end request) bool {
			return end.sent < r.received && (end.visit == r.visit || end.status != 200 || end.received > r.login[0])
		})
		if !ended && !h.mayLose(r.shard, r.login[0], r.login[1]) {
			return fmt.Errorf("it is gone, and nothing has ended it")
		}
		return nil
	}
	var acknowledged int64
	for _, add := range h.adds {
		if add.status == 200 && add.Exists && add.received < r.sent && !h.mayLose(r.shard, add.sent, add.received) {
			acknowledged++
		}
	}
	if r.Left < acknowledged {
		return fmt.Errorf("a lost write: it counts %d of %d", r.Left, acknowledged)
	}
	return nil
}

// invented checks that no write took effect twice.
func (h *history) invented(r request) error {
	var sent int64
	for _, add := range h.adds {
		if (add.status != 200 || add.Exists) && add.sent < r.received {
			sent++
		}
	}
	if r.Left > sent {
		return fmt.Errorf("a write was made twice: it counts %d of %d", r.Left, sent)
	}
	return nil
}

// renewed checks that the cookie from before a renewal cannot change anything, and cannot read after its grace
// period.
func (h *history) renewed(r request) error {
	if !r.Exists || r.cookie == len(r.renewals) {
		return nil
	}
	renewal := r.renewals[r.cookie]
	switch {
	case h.mayLose(r.shard, renewal[0], renewal[1]):
	case r.path != "GET /read" && r.sent > renewal[1]:
		return fmt.Errorf("a change with the cookie of before a renewal, %d to %d", renewal[0], renewal[1])
	case r.sent > renewal[1]+grace.Microseconds():
		return fmt.Errorf("a read with the cookie of before a renewal, %d to %d, past its grace", renewal[0], renewal[1])
	}
	return nil
}

// renewedBefore reports whether renewals explain that a request found no session: its cookie was replaced, and the
// grace may be over, or a fault may have lost its cookie.
func (h *history) renewedBefore(r request) bool {
	if r.doubt > 0 && r.doubt < r.received {
		return true
	}
	for i, renewal := range r.renewals {
		switch {
		case i < r.cookie && h.mayLose(r.shard, renewal[0], renewal[1]):
			return true
		case i == r.cookie && renewal[0]+grace.Microseconds() <= r.received:
			return true
		case i > r.cookie && renewal[0] < r.received: // only the last cookie but one has a grace period
			return true
		}
	}
	return false
}

func (r request) ends() bool { return r.path == "POST /destroy" || r.path == "POST /revoke" }

// mayLose reports whether a fault may have lost a shard's write that was made in an interval.
func (h *history) mayLose(shard int, sent, received int64) bool {
	return slices.ContainsFunc(h.outages, func(o outage) bool { return o.loses(shard) && sent <= o.ended && received >= o.lostFrom })
}
