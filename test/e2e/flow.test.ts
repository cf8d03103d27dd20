import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually, openFaultProxy, patternAt, verifyPattern } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { readPeakBytes, readResidentBytes, traceMemory } from './support/memory.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

const MIB = 1024 * 1024
/** Output in flight to a stalled reader: the largest window. */
const WINDOW_BYTES = 1 * MIB
/** Memory of a stalled session besides its window. */
const ALLOWANCE_BYTES = 8 * MIB
const SEED = 4711
/** Twice what the kernel's buffers, log and window hold, so that a process that is not paused shows. */
const FILE_BYTES = 32 * MIB

let directory = ''
let sandboxd: RunningSandboxd

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandwire-flow-'))
  await Bun.write(join(directory, 'pattern'), patternAt(SEED, 0, FILE_BYTES))
  sandboxd = await startSandboxd({ workspace: directory })
})
afterAll(async () => {
  await sandboxd.stop()
  await rm(directory, { recursive: true })
})

interface View {
  readonly output: { readonly end: number }
  readonly pid: number
  readonly state: string
}

async function view(daemon: RunningSandboxd, session: string): Promise<View> {
  return (await (await daemon.fetch(`/sessions/${session}`)).json()) as View
}

async function metric(daemon: RunningSandboxd, name: string): Promise<number> {
  const text = await (await daemon.fetch('/metrics')).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

async function onlySession(daemon: RunningSandboxd): Promise<View & { id: string }> {
  const { sessions } = (await (await daemon.fetch('/sessions')).json()) as {
    sessions: (View & { id: string })[]
  }
  const [session] = sessions
  if (session === undefined || sessions.length !== 1) throw new Error(`${sessions.length} sessions`)
  return session
}

/** Waits until a session's output stops growing and returns its offset. */
async function waitForStall(daemon: RunningSandboxd, session: string): Promise<number> {
  let last = -1
  let same = 0
  return eventually(
    async () => {
      const { end } = (await view(daemon, session)).output
      same = end === last && end > 0 ? same + 1 : 0
      last = end
      return same >= 40 ? end : undefined
    },
    { what: 'the output to stall' },
  )
}

type Flow = { readonly mode: 'pipe' | 'pty'; readonly dialect: 'v1' | 'plain' }

const CAT = 'stty raw -echo 2>/dev/null; cat pattern'

function connectCat(daemon: RunningSandboxd, mode: Flow['mode']) {
  const query = new URLSearchParams([
    ['cmd', 'sh'],
    ['arg', '-c'],
    ['arg', CAT],
    ['mode', mode],
  ])
  return connectPlain(daemon.socketUrl(`/attach?${query}`), { headers: daemon.headers })
}

/** Reads the whole pattern once at full speed. */
async function flood(daemon: RunningSandboxd, { mode, dialect }: Flow): Promise<void> {
  if (dialect === 'v1')
    return void (await runShell(daemon, CAT, { mode, output: 'digest', keepSeconds: 0 }).exit)
  await using client = await connectCat(daemon, mode)
  await client.closed
}

/** Starts a sandboxd, warms its heap with floods of this kind, and measures their peak memory. */
async function startWarm(flow: Flow): Promise<{ daemon: RunningSandboxd; peakBytes: number }> {
  const daemon = await startSandboxd({ workspace: directory })
  // The first flood triggers compilation; the others show what a flood costs. On a busy machine the collector runs late,
  // so the peak varies from flood to flood.
  for (let floods = 0; floods < 4; floods++) await flood(daemon, flow)
  // The kernel's peak: sampling could miss it.
  return { daemon, peakBytes: readPeakBytes(daemon.pid) }
}

describe('a reader that stalls', () => {
  for (const mode of ['pipe', 'pty'] as const) {
    test.concurrent(`[F1] pauses the process, takes bounded memory and loses nothing (v1, ${mode})`, async () => {
      const { daemon: warm, peakBytes } = await startWarm({ mode, dialect: 'v1' })
      await using daemon = warm
      await using client = runShell(daemon, CAT, { mode, isFrozen: true })
      await client.isAttached()
      const end = await waitForStall(daemon, client.session)
      expect(end).toBeLessThan(3 * MIB)
      const trace = await traceMemory(daemon.pid, 8_000)
      expect(trace.highest).toBeLessThan(peakBytes + WINDOW_BYTES + ALLOWANCE_BYTES)
      expect(trace.lateGrowth).toBeLessThan(MIB)
      expect((await view(daemon, client.session)).output.end).toBe(end)
      client.thaw()
      expect(await client.exit).toMatchObject({ code: 0, outputEnd: FILE_BYTES })
      expect(verifyPattern(SEED, 0, client.stdout.bytes)).toBeUndefined()
      expect(client.stdout.length).toBe(FILE_BYTES)
    })

    test.concurrent(`[P5] pauses the process, takes bounded memory and loses nothing (plain, ${mode})`, async () => {
      const { daemon: warm, peakBytes } = await startWarm({ mode, dialect: 'plain' })
      await using daemon = warm
      await using client = await connectCat(daemon, mode)
      client.pause()
      const { id } = await onlySession(daemon)
      const end = await waitForStall(daemon, id)
      // The kernel's own socket buffers count too.
      expect(end).toBeLessThan(16 * MIB)
      const trace = await traceMemory(daemon.pid, 8_000)
      expect(trace.highest).toBeLessThan(peakBytes + WINDOW_BYTES + ALLOWANCE_BYTES)
      expect(trace.lateGrowth).toBeLessThan(MIB)
      expect((await view(daemon, id)).output.end).toBe(end)
      client.resume()
      expect(await client.closed).toEqual({ code: 1000, reason: '' })
      expect(client.exit).toEqual({ type: 'exit', code: 0 })
      expect(client.stdout.length).toBe(FILE_BYTES)
      expect(verifyPattern(SEED, 0, client.stdout.bytes)).toBeUndefined()
    })
  }

  test('[F5] blocks an endless writer, which then uses no CPU time', async () => {
    await using client = runShell(sandboxd, 'exec yes', { isFrozen: true })
    await client.isAttached()
    await waitForStall(sandboxd, client.session)
    const { pid } = await view(sandboxd, client.session)
    const ticks = async () => (await Bun.file(`/proc/${pid}/stat`).text()).split(' ').slice(13, 15).join(' ')
    const before = await ticks()
    await traceMemory(sandboxd.pid, 1_000)
    expect(await ticks()).toBe(before)
    expect((await Bun.file(`/proc/${pid}/wchan`).text()) || 'pipe_write').toMatch(/pipe/)
  })
})

describe('a process that does not read', () => {
  const total = 32 * MIB
  const digest = () =>
    createHash('sha256')
      .update(patternAt(SEED, 0, total))
      .digest('hex')

  for (const mode of ['pipe', 'pty'] as const) {
    test(`[I11] applies backpressure to the client and receives every byte (v1, ${mode})`, async () => {
      const size = mode === 'pipe' ? total : 4 * MIB
      const script = `stty raw -echo 2>/dev/null; printf '<ready>'; kill -STOP $$; head -c ${size} | sha256sum`
      await using client = runShell(sandboxd, script, { mode })
      await client.waitFor('<ready>')
      const before = readResidentBytes(sandboxd.pid)
      let accepted = 0
      const writing = (async () => {
        for (let from = 0; from < size; from += 32 * 1024) {
          await client.send(patternAt(SEED, from, Math.min(32 * 1024, size - from)))
          accepted = from
        }
      })()
      let last = -1
      let same = 0
      await eventually(
        () => {
          same = accepted === last ? same + 1 : 0
          last = accepted
          return same > 100
        },
        { what: 'the client to block' },
      )
      expect(accepted).toBeLessThan(2 * MIB)
      expect(readResidentBytes(sandboxd.pid) - before).toBeLessThan(ALLOWANCE_BYTES)
      client.handle.signal('SIGCONT')
      await writing
      expect(await client.exit).toMatchObject({ code: 0 })
      const wanted = createHash('sha256')
        .update(patternAt(SEED, 0, size))
        .digest('hex')
      expect(client.text).toContain(wanted)
    })
  }

  test('[P10] applies backpressure to a plain client, takes bounded memory and receives every byte', async () => {
    await using daemon = await startSandboxd({ workspace: directory })
    const feed = async (script: string) => {
      const query = new URLSearchParams([
        ['cmd', 'sh'],
        ['arg', '-c'],
        ['arg', `${script}head -c ${total} | sha256sum`],
      ])
      const client = await connectPlain(daemon.socketUrl(`/attach?${query}`), { headers: daemon.headers })
      const writing = (async () => {
        for (let from = 0; from < total; from += 256 * 1024)
          await client.sendInput(patternAt(SEED, from, 256 * 1024))
      })()
      return { client, done: Promise.all([writing, client.closed]) }
    }
    const warm = await feed('')
    const { highest: peakBytes } = await traceMemory(daemon.pid, 1_000)
    await warm.done
    await rm(join(directory, 'go'), { force: true })
    const inputBefore = await metric(daemon, 'sandwire_input_bytes_total')
    const { client, done } = await feed('until [ -e go ]; do sleep 0.05; done; ')
    const trace = await traceMemory(daemon.pid, 3_000)
    const taken = (await metric(daemon, 'sandwire_input_bytes_total')) - inputBefore
    await Bun.write(join(directory, 'go'), '')
    await done
    expect(client.stdout.text).toContain(digest())
    expect(taken).toBeLessThan(6 * MIB)
    expect(trace.highest).toBeLessThan(peakBytes + ALLOWANCE_BYTES)
    expect(trace.lateGrowth).toBeLessThan(MIB)
  })
})

describe('an interrupt during a flood on a slow connection', () => {
  /** Bytes received after the interrupt was sent, in three runs, ascending. */
  async function bytesAfterInterrupt(mode: 'pipe' | 'pty'): Promise<number[]> {
    const results: number[] = []
    for (let run = 0; run < 3; run++) {
      await using proxy = openFaultProxy({ target: { port: sandboxd.port } })
      proxy.setFaults({ toClient: { rateBytesPerSecond: 1_000_000 } })
      const script = `trap 'echo "<stopped>"; exit 5' INT; yes 0123456789012345678901234567890123456789`
      await using client = runShell(sandboxd, script, { mode, port: proxy.port })
      await eventually(() => client.stdout.length > 1_000_000, { what: 'the flood' })
      const before = client.stdout.length
      if (mode === 'pty') await client.send('\x03')
      else client.handle.signal('SIGINT')
      const { code, outputEnd } = await client.exit
      expect(code).toBe(5)
      expect(client.text.trimEnd()).toEndWith('<stopped>')
      results.push(outputEnd - before)
    }
    return results.sort((a, b) => a - b)
  }

  test('[W3] finds little in flight when Ctrl-C is typed into a terminal', async () => {
    const [, median = 0, most = 0] = await bytesAfterInterrupt('pty')
    expect(median).toBeLessThan(200 * 1024)
    expect(most).toBeLessThan(400 * 1024)
  })

  test('[I7] finds a bounded amount in flight when SIGINT is sent to a pipe', async () => {
    // The kernel's pipe and sandboxd's read-ahead add to the window.
    const [, median = 0, most = 0] = await bytesAfterInterrupt('pipe')
    expect(median).toBeLessThan(700 * 1024)
    expect(most).toBeLessThan(MIB)
  })
})

describe('a frozen viewer', () => {
  test('[F2] never slows the driver of a pipe, and receives a gap', async () => {
    const total = 40 * MIB
    const script = `cat pattern; head -c ${total - FILE_BYTES} pattern`
    await using driver = runShell(sandboxd, `read go; ${script}`, { output: 'digest' })
    await driver.isAttached()
    await using viewer = new Attached(
      sandboxd,
      { session: driver.session, role: 'viewer' },
      { isFrozen: true, output: 'digest' },
    )
    await viewer.isAttached()
    await driver.send('\n')
    expect(await driver.exit).toMatchObject({ code: 0, outputEnd: total })
    const wanted = createHash('sha256')
      .update(patternAt(SEED, 0, FILE_BYTES))
      .update(patternAt(SEED, 0, total - FILE_BYTES))
    expect(driver.stdout.sha256).toBe(wanted.digest('hex'))
    viewer.thaw()
    expect(await viewer.exit).toMatchObject({ code: 0, outputEnd: total })
    const missed = viewer.gaps.reduce((sum, { from, to }) => sum + to - from, 0)
    expect(missed).toBeGreaterThan(30 * MIB)
    expect(viewer.stdout.length + missed).toBe(total)
  })

  test('[F3] never slows the driver of a terminal, and receives a snapshot', async () => {
    const total = 12 * MIB
    const script = `stty raw -echo; printf R; read go; head -c ${total} pattern | base64 -w 60; printf '<end>'`
    await using driver = runShell(sandboxd, script.replace('read go', 'head -c 1 >/dev/null'), {
      mode: 'pty',
      output: 'digest',
    })
    await driver.isAttached()
    await using viewer = new Attached(
      sandboxd,
      { session: driver.session, role: 'viewer' },
      { isFrozen: true },
    )
    await viewer.isAttached()
    await eventually(() => driver.stdout.length > 0, { what: 'the program to be ready' })
    await driver.send('x')
    const { outputEnd } = await driver.exit
    expect(driver.stdout.length).toBe(outputEnd)
    viewer.thaw()
    expect(await viewer.exit).toMatchObject({ code: 0, outputEnd })
    expect(viewer.stdout.length).toBeLessThan(outputEnd)
    expect(viewer.screens.length).toBeGreaterThan(0)
  })
})

describe('a frozen driver', () => {
  /** More than log and window hold. */
  const build = 'head -c 20000000 /dev/zero | tr "\\0" "x"; touch built'

  test.concurrent('[F4] lets the program of a trimming terminal finish after the stall time', async () => {
    await using daemon = await startSandboxd({ args: ['--stall-seconds', '1'] })
    await using driver = runShell(daemon, build, { mode: 'pty', isFrozen: true })
    await eventually(() => Bun.file(join(daemon.workspace, 'built')).exists(), {
      what: 'the build to finish',
    })
    driver.thaw()
    expect(await driver.exit).toMatchObject({ code: 0, outputEnd: 20_000_000 })
    expect(driver.stdout.length).toBeLessThan(20_000_000)
    expect(driver.screens.length + driver.gaps.length).toBeGreaterThan(0)
  })

  test.concurrent('[F5] pauses the program of a blocking session until it reads again', async () => {
    await using daemon = await startSandboxd({ args: ['--stall-seconds', '1', '--grace-seconds', '1'] })
    await using driver = runShell(daemon, build, { mode: 'pty', overflow: 'block', isFrozen: true })
    await driver.isAttached()
    const end = await waitForStall(daemon, driver.session)
    await traceMemory(daemon.pid, 2_000)
    expect((await view(daemon, driver.session)).output.end).toBe(end)
    expect(await Bun.file(join(daemon.workspace, 'built')).exists()).toBe(false)
    driver.thaw()
    expect(await driver.exit).toMatchObject({ code: 0, outputEnd: 20_000_000 })
    expect(driver.stdout.length).toBe(20_000_000)
    expect(driver.gaps).toEqual([])
  })

  test.concurrent('[F7] that disconnected pauses a trimming session for the grace period only', async () => {
    await using daemon = await startSandboxd({ args: ['--grace-seconds', '1'] })
    await using proxy = openFaultProxy({ target: { port: daemon.port } })
    await using driver = runShell(daemon, `read go; ${build}`, { mode: 'pty', port: proxy.port })
    await driver.isAttached()
    await driver.send('\n')
    await eventually(() => driver.stdout.length > 0, { what: 'output' })
    proxy.setFaults({ newConnections: 'refuse' })
    proxy.disconnectAll('reset')
    await eventually(() => Bun.file(join(daemon.workspace, 'built')).exists(), {
      what: 'the build to finish',
    })
    proxy.setFaults({ newConnections: 'accept' })
    expect((await driver.exit).code).toBe(0)
  })

  test.concurrent('[F6] that disconnected pauses a blocking session until it resumes', async () => {
    await using daemon = await startSandboxd({ args: ['--grace-seconds', '1'] })
    await using proxy = openFaultProxy({ target: { port: daemon.port } })
    await using driver = runShell(daemon, build, { port: proxy.port })
    await eventually(() => driver.stdout.length > 0, { what: 'output' })
    proxy.setFaults({ newConnections: 'refuse' })
    proxy.disconnectAll('reset')
    const end = await waitForStall(daemon, driver.session)
    await traceMemory(daemon.pid, 2_000)
    expect((await view(daemon, driver.session)).output.end).toBe(end)
    proxy.setFaults({ newConnections: 'accept' })
    expect(await driver.exit).toMatchObject({ code: 0, outputEnd: 20_000_000 })
    expect(driver.stdout.length).toBe(20_000_000)
  })
})
