package server

import "github.com/lazyreq/lazyreq/bench/load"

const fullQuery = "go"

// asked is what a stack is asked: of 100 requests of a connection, Percent are for /full,
// evenly spread.
type asked struct {
	load.Options
	Cookie  string
	Percent int
}

// question is a request as it is sent, and the body that is its answer.
type question struct {
	text   []byte
	answer load.Answer
}

func (l *asked) newQuestion(target string, p page) question {
	text := "GET " + target + " HTTP/1.1\r\nHost: " + l.Addr + "\r\nCookie: " + l.Cookie + "\r\n\r\n"
	return question{[]byte(text), load.Answer{Status: "200", Body: []byte(p.encoded())}}
}

// mix chooses what a connection asks next.
type mix struct {
	light, full question
	percent     int
	credit      int // hundredths of a request for /full
	asked       *question
}

// newMix returns the mix of connection i. Connections are not in step.
func (l *asked) newMix(i int) mix {
	return mix{
		light:   l.newQuestion("/light", lightPage),
		full:    l.newQuestion("/full?q="+fullQuery, page{user, fullQuery}),
		percent: l.Percent,
		credit:  i * 37 % 100,
	}
}

// Next is for [load.Conn].
func (m *mix) Next() []byte {
	m.asked = m.nextQuestion()
	return m.asked.text
}

// Check is for [load.Conn].
func (m *mix) Check(got []byte) (whole bool, err error) { return m.asked.answer.Check(got) }

func (m *mix) nextQuestion() *question {
	if m.credit += m.percent; m.credit >= 100 {
		m.credit -= 100
		return &m.full
	}
	return &m.light
}
