import { readlinkSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  connectPlain,
  eventually,
  openFaultProxy,
  Random,
  readDescendants,
  readProcessTable,
} from '@sandwire/testing'
import { Attached, endSession } from './support/attached.ts'
import { readResidentBytes } from './support/memory.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** `SANDWIRE_LEAK_SESSIONS=1000` for a long run. */
const SESSIONS = Number(process.env['SANDWIRE_LEAK_SESSIONS'] ?? 300)
/** Concurrent sessions. */
const LANES = 16
/** Allowed heap growth over all sessions; leaking one log each would be hundreds of times that. */
const HEAP_BYTES = 64 * 1024 * 1024

let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd({ args: ['--requests-per-second', '5000'] })
})
afterAll(() => sandboxd.stop())

async function readGauge(name: string): Promise<number> {
  const text = await (await sandboxd.fetch('/metrics')).text()
  return Number(new RegExp(`^sandwire_${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}

/** Processes that started in the workspace, including those outside sandboxd's process tree. */
function findOrphans(): string[] {
  return readProcessTable()
    .filter(({ pid, state }) => {
      try {
        return state !== 'Z' && readlinkSync(`/proc/${pid}/cwd`).startsWith(sandboxd.workspace)
      } catch {
        // Ended, or owned by another user.
        return false
      }
    })
    .map(({ name }) => name)
}

/** What an idle sandboxd holds. */
async function readHoldings(): Promise<object> {
  const below = readDescendants(sandboxd.pid)
  return {
    sessions: await readGauge('sessions'),
    attachments: await readGauge('attachments'),
    logBytes: await readGauge('log_bytes'),
    descendants: below.map(({ name, state }) => `${name} ${state}`),
    orphans: findOrphans(),
  }
}

/** Runs one session from start to end; `index` selects how it ends. */
async function live(random: Random, port: number): Promise<void> {
  const mode = random.pick(['pipe', 'pty'] as const)
  const shell = (script: string, keepSeconds: number, proxyPort?: number) =>
    new Attached(
      sandboxd,
      { cmd: 'sh', args: ['-c', script], mode, keepSeconds },
      { output: 'digest', connectForMs: 30_000, ...(proxyPort === undefined ? {} : { port: proxyPort }) },
    )
  switch (random.int(0, 7)) {
    case 0:
      await shell('echo out; exit 3', 0).exit
      return
    case 1: {
      const client = await shell('exec sleep 600', 60).isAttached()
      client.handle.signal('SIGKILL')
      await client.exit
      await endSession(sandboxd, client.session)
      return
    }
    case 2: {
      const client = await shell('exec sleep 600', 0).isAttached()
      client.handle.detach()
      return
    }
    case 3: {
      const client = await shell('setsid sleep 600 & exec sleep 600', 60).isAttached()
      await endSession(sandboxd, client.session)
      await client.exit
      return
    }
    case 4: {
      const client = shell('seq 1 5000; exit 0', 60, port)
      await client.exit
      await endSession(sandboxd, client.session)
      return
    }
    case 5: {
      const client = await connectPlain(sandboxd.socketUrl(`/attach?cmd=cat&mode=${mode}`), {
        headers: sandboxd.headers,
      })
      client.terminate()
      return
    }
    case 6:
      await shell('true', 0).exit
      return
    case 7: {
      const client = await shell('exec cat', 60).isAttached()
      const viewer = await new Attached(
        sandboxd,
        { session: client.session, role: 'viewer' },
        { output: 'digest' },
      ).isAttached()
      await endSession(sandboxd, client.session)
      await Promise.all([client.exit, viewer.exit])
    }
  }
}

async function liveMany(count: number, seed: number): Promise<void> {
  await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
  const cutting = setInterval(() => proxy.disconnectAll('reset'), 150)
  let left = count
  const lane = async (random: Random) => {
    while (left > 0) {
      left--
      await live(random, proxy.port)
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, index) => lane(new Random(seed + index))))
  clearInterval(cutting)
}

test(`${SESSIONS} sessions of every kind leave no descriptor, child, zombie or session behind`, async () => {
  await liveMany(100, 1)
  const settled = async () => (await readGauge('sessions')) === 0 && findOrphans().length === 0
  await eventually(settled, { what: 'the warm-up to settle' })
  const before = await readHoldings()
  const descriptorsBefore = await readGauge('open_descriptors')
  const memoryBefore = readResidentBytes(sandboxd.pid)
  await liveMany(SESSIONS, 100)
  await eventually(settled, { what: 'the last session to go' })
  expect(await readHoldings()).toEqual(before)
  // The test's own connections vary, so fewer descriptors are fine.
  await eventually(async () => (await readGauge('open_descriptors')) <= descriptorsBefore, {
    what: `${descriptorsBefore} descriptors again`,
  })
  expect(readResidentBytes(sandboxd.pid) - memoryBefore).toBeLessThan(HEAP_BYTES)
})
