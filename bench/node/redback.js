'use strict'

// Drives redback's rate limit for the suite "counter". It is started with the port of
// a Redis, and reads commands as commands.js documents:
//
//   {"do": "prepare", "round": "r1", "subjects": 64, "charge": true}
//   {"do": "run", "op": "addCount", "interval": 20, "callers": 50, "ms": 1000}
//   {"do": "verify"}
//   {"do": "cpu"}
//
// The answer has "ops" and "seconds" of a run or of the processor, "wrong" for a wrong result, and "error"
// for anything else that failed. Callers are promises, each call awaited.

const redis = require('redis')
const redback = require('redback')
const { Wrong, answer, fatal } = require('./commands.js')

const span = 595

const client = redis.createClient({ host: '127.0.0.1', port: Number(process.argv[2]) })
let limits, subjects, charged

async function prepare ({ round, subjects: n, charge }) {
  limits = redback.use(client).createRateLimit('bench:' + round)
  subjects = Array.from({ length: n }, (_, i) => 'subject' + i)
  charged = subjects.map(() => 0)
  if (!charge) return {}
  for (let i = 0; i < n; i++) {
    for (; charged[i] <= i % 7; charged[i]++) await called(done => limits.add(subjects[i], done))
  }
  return {}
}

const called = start => new Promise((resolve, reject) => {
  start((err, value) => err ? reject(err) : resolve(value))
})

// run has callers at once, each with one call after the other until the time is over.
async function run ({ op, interval, callers, ms }) {
  const call = calls[op]
  let next = 0; let ops = 0; let over = false
  const timer = setTimeout(() => { over = true }, ms)
  const began = process.hrtime.bigint()
  const caller = async () => {
    while (!over) {
      const wrong = await call(next++ % subjects.length, interval)
      if (wrong) throw new Wrong(wrong)
      ops++
    }
  }
  try {
    await Promise.all(Array.from({ length: callers }, caller))
  } finally {
    over = true
    clearTimeout(timer)
  }
  return { ops, seconds: Number(process.hrtime.bigint() - began) / 1e9 }
}

// calls return what is wrong, if anything.
const calls = {
  async add (i) {
    charged[i]++
    await called(done => limits.add(subjects[i], done))
  },
  async count (i, interval) {
    const n = await called(done => limits.count(subjects[i], interval, done))
    return n !== charged[i] && `count of ${n}, want ${charged[i]}`
  },
  async addCount (i, interval) {
    const atLeast = ++charged[i] - 50
    const n = await called(done => limits.addCount(subjects[i], interval, done))
    return !(n > atLeast && n <= charged[i]) && `count of ${n}, of ${charged[i]} charged`
  }
}

async function verify () {
  for (let i = 0; i < subjects.length; i++) {
    const n = await called(done => limits.count(subjects[i], span, done))
    if (n !== charged[i]) throw new Wrong(`count of ${n} in the end, want ${charged[i]}`)
  }
  return {}
}

answer({ prepare, run, verify }, () => client.quit())
client.on('error', fatal)
