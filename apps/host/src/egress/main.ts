// The egress proxy of one sandbox as a process of its own. Reads `EgressTask` as one JSON line from stdin and ends with stdin;
// prints `EgressMessage` as JSON lines.

import { formatEgressMessage, parseEgressTask } from './egress-messages.ts'
import { openEgressProxy } from './egress-proxy.ts'
import { readLines } from '../read-lines.ts'

const print = (message: Parameters<typeof formatEgressMessage>[0]): void =>
  void process.stdout.write(formatEgressMessage(message))

const lines = readLines(Bun.stdin.stream())
const task = parseEgressTask((await lines.next()).value ?? '')
await using _proxy = await openEgressProxy({
  ...task,
  log: { warn: (_event, fields) => print({ type: 'blocked', ...fields }) },
})
print({ type: 'ready' })
await lines.next()
process.exit(0)
