'use strict'

// Drives rate-limiter-flexible for the suite "denycache": 5 points a second of each key,
// with its in-memory block if the second argument is "block". The first is the port of a
// Redis. It reads commands as commands.js documents:
//
//   {"do": "run", "round": "r1", "keys": 5, "callers": 50, "ms": 1500}
//   {"do": "serve", "keys": 5}
//   {"do": "cpu"}
//
// A run's answer has "ops" and "seconds", "admitted" of each key, and "latencies", in µs, of
// every 61st call. The server's has its "port"; GET /r1 takes of one of r1's keys.
// Callers are promises, each call awaited.

const Redis = require('ioredis')
const { RateLimiterRedis } = require('rate-limiter-flexible')
const http = require('node:http')
const { answer, fatal } = require('./commands.js')
const { performance } = require('node:perf_hooks')

const every = 61

const client = new Redis(Number(process.argv[2]), '127.0.0.1')
const limiter = new RateLimiterRedis({
  storeClient: client,
  points: 5,
  duration: 1,
  ...(process.argv[3] === 'block' && { inMemoryBlockOnConsumed: 5 })
})

// take reports whether a unit was left.
async function take (key) {
  try {
    await limiter.consume(key)
    return true
  } catch (denial) {
    if (denial instanceof Error) throw denial
    return false
  }
}

// Who is blocked answers without the event loop, which then has no time for timers: the
// callers look at the clock themselves.
async function run ({ round, keys, callers, ms }) {
  const names = Array.from({ length: keys }, (_, i) => round + ':' + i)
  const admitted = names.map(() => 0)
  const latencies = []
  let ops = 0
  const began = performance.now()
  const end = began + ms
  const caller = async () => {
    for (let n = 0; ; n++) {
      const i = Math.floor(Math.random() * keys)
      if (n % every) {
        if (await take(names[i])) admitted[i]++
      } else {
        const at = performance.now()
        if (at > end) return
        if (await take(names[i])) admitted[i]++
        latencies.push((performance.now() - at) * 1000)
      }
      ops++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return { ops, seconds: (performance.now() - began) / 1000, admitted, latencies }
}

function serve ({ keys }) {
  const server = http.createServer(async (req, res) => {
    try {
      if (await take(req.url.slice(1) + ':' + Math.floor(Math.random() * keys))) {
        res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
      } else {
        res.writeHead(429).end('Too Many Requests')
      }
    } catch (err) {
      res.writeHead(500).end(String(err))
    }
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => resolve({ port: server.address().port }))
    server.unref()
  })
}

answer({ run, serve }, () => process.exit(0))
client.on('error', fatal)
