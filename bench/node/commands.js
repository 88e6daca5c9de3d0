'use strict'

// What the scripts have in common: they read one JSON command per line from stdin, and
// answer each with a line. "cpu" is a command of all of them.

const readline = require('node:readline')

// Wrong is an error about a wrong result.
class Wrong extends Error {}

function cpu () {
  const { user, system } = process.cpuUsage()
  return { seconds: (user + system) / 1e6 }
}

// answer answers commands, whose functions are named after them, until stdin ends. It calls
// end then.
function answer (commands, end) {
  const all = { ...commands, cpu }
  const lines = readline.createInterface({ input: process.stdin })
  lines.on('line', async line => {
    const command = JSON.parse(line)
    let answer
    try {
      answer = await all[command.do](command)
    } catch (err) {
      answer = err instanceof Wrong ? { wrong: err.message } : { error: String(err) }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  })
  lines.on('close', end)
}

// fatal ends the process.
function fatal (err) {
  console.error(String(err))
  process.exit(1)
}

module.exports = { Wrong, answer, fatal }
