import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readProcessMemory } from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from '../../test/e2e/support/sandboxd.ts'
import { openParts } from '../competitors.ts'
import { attachStream } from '../peers/sandwire.ts'
import type { Stream } from '../peers/stream.ts'
import { below, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

/** Sessions whose clients vanish at once. */
const COUNTS = [100, 500, 2_000] as const

/** Interval of keystrokes in the session that is not ended. */
const TRIP_EVERY_MS = 5
/** Interval of the count of sessions. */
const POLL_MS = 50
/** Time that sessions may take to end before the row fails. */
const TIMEOUT_MS = 120_000

const MEBIBYTE = 1024 * 1024
const ARGS = ['--max-sessions', '4000', '--requests-per-second', '100000', '--messages-per-second', '1000000']

/** Opens sessions from a process of its own, so that killing it closes all connections at once. */
async function holdSessions(sandboxd: RunningSandboxd, count: number): Promise<Bun.Subprocess> {
  const program = join(import.meta.dir, '../programs/hold-sessions.ts')
  const holder = Bun.spawn(
    [process.execPath, program, sandboxd.socketUrl('/attach?cmd=cat'), String(count)],
    {
      env: { ...process.env, AUTHORIZATION: sandboxd.headers.authorization },
      stdout: 'pipe',
      stderr: 'inherit',
    },
  )
  for await (const _ of holder.stdout) return holder
  throw new Error(`Cannot open ${count} sessions`)
}

/** Counted from outside, because a request would delay the session that types. */
function countChildren(pid: number): number {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').length - 1
}

async function countSessions(sandboxd: RunningSandboxd): Promise<number> {
  const text = await (await sandboxd.fetch('/metrics')).text()
  return Number(/^sandwire_sessions (\d+)$/m.exec(text)?.[1])
}

/** Types until told to stop; returns the round-trip times. */
async function typeUntil(stream: Stream, isOver: () => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isOver()) {
    const { promise, resolve } = Promise.withResolvers<void>()
    stream.onData = () => resolve()
    const startMs = performance.now()
    stream.write(new Uint8Array([0x78]))
    await promise
    times.push(performance.now() - startMs)
    await Bun.sleep(TRIP_EVERY_MS)
  }
  return times
}

async function measureEnd(count: number) {
  await using sandboxd = await startSandboxd({ args: ARGS })
  const stream = await attachStream(sandboxd, { argv: ['cat'], mode: 'pipe' })
  const holder = await holdSessions(sandboxd, count)
  const before = readProcessMemory(sandboxd.pid).pssBytes
  let most = before
  let isOver = false
  const typing = typeUntil(stream, () => isOver)
  const startMs = performance.now()
  holder.kill('SIGKILL')
  while (countChildren(sandboxd.pid) > 1 || (await countSessions(sandboxd)) > 1) {
    if (performance.now() > startMs + TIMEOUT_MS) throw new Error(`${count} sessions have not ended`)
    most = Math.max(most, readProcessMemory(sandboxd.pid).pssBytes)
    await Bun.sleep(POLL_MS)
  }
  const goneMs = performance.now() - startMs
  isOver = true
  const times = await typing
  stream.close()
  return { goneMs, echoMs: quantile(times, 0.99), growthMib: (most - before) / MEBIBYTE }
}

/** From SIGTERM to the exit, with sessions open. */
async function measureStop(count: number): Promise<number> {
  await using sandboxd = await startSandboxd({ args: ARGS })
  const holder = await holdSessions(sandboxd, count)
  const startMs = performance.now()
  sandboxd.kill('SIGTERM')
  await sandboxd.exited
  holder.kill('SIGKILL')
  return performance.now() - startMs
}

const nameOf = (what: string, count: number): string => `${count.toLocaleString('en-US')} ${what}`

async function measureAll(): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  for (const count of COUNTS) {
    const { goneMs, echoMs, growthMib } = await measureEnd(count)
    figures[nameOf('gone', count)] = goneMs
    figures[nameOf('echo p99', count)] = echoMs
    figures[nameOf('stop', count)] = await measureStop(count)
    process.stderr.write(`${nameOf('sessions', count)}: memory grew by ${growthMib.toFixed(1)} MiB\n`)
  }
  return figures
}

export const endSessions: Row = {
  id: 'end-sessions',
  title: 'end many sessions at once',
  unit: 'ms',
  about:
    'Time until the sessions of clients that vanish have ended, the 99th percentile of a round trip in another session meanwhile, and the time from SIGTERM to the exit of sandboxd with as many sessions.',
  targets: [
    below('2,000 gone', 5_000, 'ms'),
    below('2,000 echo p99', 50, 'ms'),
    below('2,000 stop', 4_000, 'ms'),
  ],
  open: async () =>
    openParts({
      parts: COUNTS.flatMap((count) => ['gone', 'echo p99', 'stop'].map((what) => nameOf(what, count))),
      measure: measureAll,
      close: async () => {},
    }),
}
