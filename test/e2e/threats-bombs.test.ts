import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive, readDescendants } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { Attached, runShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { UnaffectedSession } from './support/unaffected-session.ts'
import { canBecomeNobody } from './support/nobody.ts'

const MEBIBYTE = 1024 ** 2
/** Small, so that an unbounded bomb does not harm the machine. */
const LIMITS = { memoryBytes: 256 * MEBIBYTE, pids: 64, milliCpus: 500, diskBytes: 64 * MEBIBYTE }
/** How long a bomb runs while the other sandbox is checked. */
const BOMB_MS = 800

const BOMBS = [
  ['processes', 'bomb() { bomb | bomb & }; bomb; wait'],
  ['memory', `exec python3 -c 'x = []\nwhile True: x.append(b"x" * 10000000)'`],
  ['bytes on disk', 'yes > a; yes > ~/b; yes > /tmp/c'],
  ['files', 'mkdir -p d; i=0; while :; do : > d/$i; i=$((i+1)); done'],
  ['terminals', `exec python3 -c 'import os\nwhile True:\n try: os.openpty()\n except OSError: pass'`],
  [
    'descriptors',
    `exec python3 -c 'import socket\ns = []\nwhile True:\n try: s.append(socket.socket())\n except OSError: pass'`,
  ],
  ['daemons', 'while :; do setsid -f sleep 86399 >/dev/null 2>&1 </dev/null; done'],
] as const

const problem = await findBubblewrapProblem()
const isRoot = process.getuid?.() === 0

/** Host uids of a sandbox; with root, each sandbox has its own. */
function idsOf(deployment: Deployment, sandbox: string): number[] {
  const folder = join(deployment.data, 'isolation', 'uids')
  return readdirSync(folder)
    .filter((name) => readlinkSync(join(folder, name)) === sandbox)
    .flatMap((name) => [Number(name), Number(name) + 1])
}

/** Processes of these users, zombies excluded. */
function processesOf(uids: readonly number[]): number[] {
  const owned = Bun.spawnSync(['ps', '-eo', 'pid=,uid=,stat=']).stdout.toString().trim().split('\n')
  return owned.flatMap((line) => {
    const [pid, uid, state = ''] = line.trim().split(/\s+/)
    return uids.includes(Number(uid)) && !state.startsWith('Z') ? [Number(pid)] : []
  })
}

describe.skipIf(problem !== undefined).each(canBecomeNobody ? [false, true] : [false])(
  'a bomb in one sandbox (unprivileged host: %p)',
  (isNobody) => {
    let deployment: Deployment
    let neighbor: UnaffectedSession
    beforeAll(async () => {
      deployment = await Deployment.open({ isNobody })
      await deployment.create('neighbor')
      neighbor = await UnaffectedSession.open(deployment.sandbox('neighbor'))
    })
    afterAll(async () => {
      await neighbor[Symbol.asyncDispose]()
      await deployment[Symbol.asyncDispose]()
    })

    test.each(BOMBS)(
      'of %s leaves other sandboxes unaffected and is gone once destroyed (threat T32)',
      async (kind, script) => {
        // Its own, so that what one bomb leaves behind fails no other test.
        const name = `bombed-by-${kind.replaceAll(' ', '-')}`
        const { id } = await deployment.create(name, { limits: LIMITS })
        const uids = isRoot && !isNobody ? idsOf(deployment, id) : []
        expect(uids.length).toBe(isRoot && !isNobody ? 2 : 0)
        const supervisor = deployment.supervisor(id)
        const bomb = runShell(deployment.sandbox(name), `read -r go; ${script}`)
        // It may end by a kill of the process, a stop of the sandbox, or the destroy below.
        bomb.exit.catch(() => undefined)
        // Before it starts, because a bomb slows its own sandbox down.
        await bomb.isAttached()
        await bomb.send('go\n')
        const untilMs = performance.now() + BOMB_MS
        do {
          await neighbor.check()
          expect((await deployment.fetch('/readyz')).status).toBe(200)
          await deployment.describe(name)
        } while (performance.now() < untilMs)
        const exploded = readDescendants(supervisor)
        // Plus bubblewrap's own processes.
        expect(exploded.length).toBeLessThanOrEqual(LIMITS.pids + 4)
        await deployment.destroy(name)
        bomb.handle.detach()
        await deployment.waitUntilGone(id)
        expect(exploded.filter(({ pid }) => isAlive(pid))).toEqual([])
        expect(processesOf(uids)).toEqual([])
        expect(neighbor.reconnections).toBe(0)
      },
      120_000,
    )
  },
)

/** Bytes that a flood may transfer while another session waits for an echo. */
const MAX_MOVED_BYTES = 512 * MEBIBYTE

test('a session at full rate both ways does not starve other sessions (threat T33)', async () => {
  await using deployment = await Deployment.open()
  await Promise.all([deployment.create('loud'), deployment.create('quiet')])
  await using same = await UnaffectedSession.open(deployment.sandbox('loud'))
  await using other = await UnaffectedSession.open(deployment.sandbox('quiet'))
  let moved = 0
  await using reading = new Attached(
    deployment.sandbox('loud'),
    { cmd: 'yes', mode: 'pipe' },
    { output: 'digest', onOutput: (_, bytes) => void (moved += bytes.byteLength) },
  )
  await using writing = runShell(deployment.sandbox('loud'), 'exec cat > /dev/null')
  await Promise.all([reading.isAttached(), writing.isAttached()])
  let isOver = false
  const flooding = (async () => {
    const block = new Uint8Array(65_536)
    for (; !isOver; moved += block.byteLength) await writing.send(block)
  })()
  for (let round = 0; round < 50; round += 1) {
    const before = moved
    await Promise.all([same.check(), other.check(), deployment.describe('quiet')])
    expect(moved - before).toBeLessThan(MAX_MOVED_BYTES)
  }
  expect(moved).toBeGreaterThan(8 * MEBIBYTE)
  isOver = true
  await flooding
})
