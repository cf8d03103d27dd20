// Requests streams of a model API, one after the other, and prints the delay of their first byte and of their events.
// In sandboxes it runs alone, so that it imports nothing.

const REQUESTS = 10
const [, , url] = process.argv
const MARK = /@(\d+\.\d+)@/g
const body = JSON.stringify({
  model: 'claude-sonnet-4-5',
  max_tokens: 1_000,
  stream: true,
  messages: [{ role: 'user', content: 'timed stream' }],
})
const headers = {
  'content-type': 'application/json',
  authorization: `Bearer ${process.env['ANTHROPIC_AUTH_TOKEN'] ?? 'none'}`,
}

const first: number[] = []
const events: number[] = []

async function measure(): Promise<void> {
  const startMs = performance.now()
  const response = await fetch(`${url}/v1/messages`, { method: 'POST', headers, body })
  if (response.status !== 200 || response.body === null)
    throw new Error(`Cannot stream: ${response.status} ${await response.text()}`)
  const decoder = new TextDecoder()
  let isFirst = true
  for await (const chunk of response.body) {
    if (isFirst) first.push(performance.now() - startMs)
    isFirst = false
    const nowMs = performance.timeOrigin + performance.now()
    for (const [, sentMs] of decoder.decode(chunk).matchAll(MARK)) events.push(nowMs - Number(sentMs))
  }
}

function middle(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? Number.NaN
}

// The first one opens connections and compiles.
await measure()
first.length = 0
events.length = 0
for (let left = REQUESTS; left > 0; left -= 1) await measure()
console.log(JSON.stringify({ first: middle(first), event: middle(events) }))

export {}
