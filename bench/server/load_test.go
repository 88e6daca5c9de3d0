package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/load"
)

func TestMixIsExactAndSpread(t *testing.T) {
	for _, percent := range []int{0, 10, 50, 100} {
		l := asked{Percent: percent}
		for i := range 64 {
			m := l.newMix(i)
			full, gap, longest := 0, 0, 0
			for range 1000 {
				if m.nextQuestion() == &m.full {
					full, gap = full+1, 0
				} else {
					gap++
				}
				longest = max(longest, gap)
			}
			require.Equal(t, percent*10, full)
			if percent > 0 {
				require.Less(t, longest, 100/percent)
			}
		}
	}
}

func TestAnswerIsComparedWhole(t *testing.T) {
	q := new(asked).newQuestion("/light", page{"a", "b"})
	body := page{"a", "b"}.encoded()
	header := "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 25\r\n\r\n"
	require.Len(t, body, 25)
	for n := range len(header + body) {
		whole, err := q.answer.Check([]byte((header + body)[:n]))
		require.NoError(t, err, n)
		require.False(t, whole, n)
	}
	whole, err := q.answer.Check([]byte(header + body))
	require.NoError(t, err)
	require.True(t, whole)

	for name, wrong := range map[string]string{
		"status":       "HTTP/1.1 500 Internal Server Error\r\n",
		"another body": header + page{"a", "c"}.encoded(),
		"length":       "HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n" + body,
		"no length":    "HTTP/1.1 200 OK\r\n\r\n" + body,
		"too much":     header + body + "x",
	} {
		_, err := q.answer.Check([]byte(wrong))
		require.ErrorIs(t, err, load.ErrWrong, name)
	}
}

func TestCommandsOfScriptsAreToldApart(t *testing.T) {
	log := "+OK\r\n" +
		"+1700000000.1 [0 127.0.0.1:5000] \"evalsha\" \"abc\" \"1\" \"a] \\\"b\"\r\n" +
		"+1700000000.2 [0 lua] \"GET\" \"k\"\r\n" +
		"+1700000000.3 [0 127.0.0.1:5000] \"GET\" \"k\"\r\n" +
		"+1700000000.4 [0 127.0.0.1:5001] \"echo\" \"end\"\r\n"
	require.Equal(t, map[string]int{"evalsha": 1, "get": 1}, countClientCommands(log))

	i := &instance{direct: map[string]float64{"get": 0.5, "evalsha": 1, "time": 0}}
	before := map[string]int{"get": 10}
	after := map[string]int{"get": 30, "evalsha": 10, "time": 10, "ping": 3}
	require.EqualValues(t, 23, i.commandsSent(before, after), "half of the GETs, the scripts, and what is new")
}
