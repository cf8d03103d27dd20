// Holds one sandbox like a supervisor. Reads `stop`, `remove` and `exit` from stdin, one per line, and prints
// events as JSON lines. Started by `isolated.ts`, as root or as nobody.

import { createBubblewrap } from '../../../../apps/host/src/isolation/bubblewrap.ts'
import { defaultRunBase, INSIDE } from '../../../../apps/host/src/isolation/isolation.ts'

const [dataFolder = '', codeFolder = '', id = '', limitsText = '', overlays] = process.argv.slice(2)
const uid = process.getuid?.() ?? 0
const limits = JSON.parse(limitsText)
const isolation = createBubblewrap({
  dataFolder,
  runBase: defaultRunBase(process.env, uid),
  isRoot: uid === 0,
  diskBytesPerSecond: 64 * 1024 ** 2,
  ...(overlays === 'no-overlays' && { hasOverlays: false }),
  program: { executable: process.execPath, code: { folder: codeFolder, entry: 'stand-in.ts' } },
})
const print = (value: unknown): void => console.log(JSON.stringify(value))

const outside = await isolation.prepare({ id, limits })
const launched = await isolation.launch({
  id,
  name: 'dev',
  limits,
  daemonArgs: ['--listen', `unix:${INSIDE.daemonSocket}`],
  publicKey: 'key',
  hasEgress: true,
})
const reader = launched.stdout.getReader()
const stderr = new Response(launched.stderr).text()
const isReady = !(await reader.read()).done
print(isReady ? { type: 'ready', socket: outside.daemonSocket } : { type: 'dead', said: await stderr })
void launched.ended.then((reason) => print({ type: 'ended', reason }))

for await (const line of console) {
  if (line === 'stop') {
    const startedMs = performance.now()
    await launched.stop(500)
    print({ type: 'stopped', tookMs: performance.now() - startedMs })
  }
  if (line === 'remove') {
    await isolation.remove(id)
    print({ type: 'removed' })
  }
  if (line === 'exit') process.exit(0)
}
