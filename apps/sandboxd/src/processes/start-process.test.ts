import { eventually, isAlive, Random, readProcessCounts } from '@sandwire/testing'
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  record,
  type RecordedProcess,
  type RecordOptions,
  shell,
  TEST_PATH,
} from './recorded-process.fixture.ts'
import { createStartProcess } from './start-process.ts'

const start = createStartProcess()
/** Starts a process with a short drain timeout, for tests that wait for it. */
const startImpatient = createStartProcess({ drainMs: 150, drainBytes: 256 * 1024 })
const TIMEOUT_MS = 180_000

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const shown = (run: RecordedProcess, text: string): Promise<unknown> =>
  eventually(() => run.text().includes(text), { what: `output ${JSON.stringify(text)}` })

/** The output as a terminal delivers it: line feeds become CR LF. */
const expected = (mode: 'pipe' | 'pty', text: string): string =>
  mode === 'pty' ? text.replaceAll('\n', '\r\n') : text

const sequence = (count: number): string =>
  Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('')

/** A unique sleep time, which identifies the processes of this run. */
function ownSeconds(index: number): number {
  return 1_000_000 + process.pid * 10 + index
}

describe.each(['pipe', 'pty'] as const)('a %s process', (mode) => {
  const begin = (script: string, options: RecordOptions = {}) =>
    record(start, shell(script), { mode, ...options })

  test('reports its exit code after all of its output', async () => {
    const run = begin('seq 1 20000; exit 42')
    expect(await run.ended).toEqual({ code: 42, signal: null, truncated: false })
    expect(run.text()).toBe(expected(mode, sequence(20_000)))
    expect(run.events.filter((event) => event === 'ended')).toHaveLength(1)
    expect(run.events.at(-1)).toBe('ended')
  })

  test('reports the signal that killed it', async () => {
    expect(await begin('kill -KILL $$').ended).toEqual({ code: null, signal: 'SIGKILL', truncated: false })
  })

  test('reports a realtime signal by number', async () => {
    expect(await begin('kill -40 $$').ended).toEqual({ code: null, signal: 'SIG40', truncated: false })
  })

  test('keeps its exit code when it is 128 plus a signal', async () => {
    expect(await begin('exit 137').ended).toEqual({ code: 137, signal: null, truncated: false })
  })

  test(
    'loses no byte over many short runs with random pauses',
    async () => {
      const random = new Random(7)
      for (let round = 0; round < 60; round += 1) {
        const length = 1 + Math.floor(random.next() * 20_000)
        const run = begin(`seq 1 ${length}; exit 3`, {
          onOutput: (process) => {
            if (random.next() < 0.3) {
              process.pause()
              setTimeout(() => process.resume(), random.next() * 3)
            }
          },
        })
        expect(await run.ended).toEqual({ code: 3, signal: null, truncated: false })
        expect(run.text()).toBe(expected(mode, sequence(length)))
      }
    },
    TIMEOUT_MS,
  )

  test('delivers everything after resume when it exited while paused', async () => {
    const run = begin('seq 1 2000; exit 5')
    run.process.pause()
    await eventually(() => !isAlive(run.process.pid), { what: 'the leader to exit' })
    expect(run.events).not.toContain('ended')
    run.process.resume()
    expect(await run.ended).toEqual({ code: 5, signal: null, truncated: false })
    expect(run.text()).toBe(expected(mode, sequence(2000)))
  })

  test('delivers nothing while paused, and blocks', async () => {
    const run = begin('exec cat /dev/zero')
    await eventually(() => run.stdout().length > 0, { what: 'output' })
    run.process.pause()
    const before = run.stdout().length
    await eventually(() => isBlocked(run.process.pid), { what: 'the writer to block' })
    expect(run.stdout().length).toBe(before)
    run.process.resume()
    await eventually(() => run.stdout().length > before, { what: 'more output' })
    await run.process.terminate()
    await run.ended
  })

  test('delivers what a grandchild writes after the leader has exited', async () => {
    const run = begin(`trap '' HUP; { sleep 0.2; seq 1 5000; } & exit 9`)
    expect(await run.ended).toEqual({ code: 9, signal: null, truncated: false })
    expect(run.text()).toBe(expected(mode, sequence(5000)))
  })

  test('ends truncated when a silent grandchild holds the stream', async () => {
    const run = record(startImpatient, shell(`trap '' HUP; sleep 60 & exit 9`), { mode })
    expect(await run.ended).toEqual({ code: 9, signal: null, truncated: true })
    await run.process.terminate()
  })

  test('ends truncated when a grandchild writes without end', async () => {
    const run = record(startImpatient, shell(`trap '' HUP; yes & sleep 0.05; exit 9`), { mode })
    expect(await run.ended).toEqual({ code: 9, signal: null, truncated: true })
    await run.process.terminate()
  })

  test('does not run the drain clock while paused', async () => {
    const quick = createStartProcess({ drainMs: 30 })
    const run = record(quick, shell(`trap '' HUP; { sleep 0.3; echo late; } & exit 9`), { mode })
    run.process.pause()
    const isSessionEmpty = () => Bun.spawnSync(['pgrep', '-s', String(run.process.pid)]).exitCode === 1
    await eventually(isSessionEmpty, { what: 'the grandchild to exit' })
    expect(run.events).toEqual([])
    run.process.resume()
    expect(await run.ended).toEqual({ code: 9, signal: null, truncated: false })
    expect(run.text()).toBe(expected(mode, 'late\n'))
  })

  test('passes input through in order and settles all of it', async () => {
    const prepare = mode === 'pty' ? 'stty raw -echo;' : ''
    const input = new Uint8Array(1_048_576).map((_, index) => (index * 7 + (index >> 8)) & 0xff)
    const run = begin(`${prepare} printf ready; head -c ${input.length} | sha256sum`)
    await shown(run, 'ready')
    for (let at = 0; at < input.length; at += 100_000) run.process.write(input.subarray(at, at + 100_000))
    await run.ended
    expect(run.text()).toContain(new Bun.CryptoHasher('sha256').update(input).digest('hex'))
    expect(run.settledBytes()).toBe(input.length)
  })

  test('sees end of file after its last input', async () => {
    const run = record(start, ['cat'], { mode })
    run.process.write(bytes('one\n'))
    run.process.write(bytes('two\n'))
    run.process.closeInput()
    expect(await run.ended).toEqual({ code: 0, signal: null, truncated: false })
    expect(run.text()).toEndWith(expected(mode, 'two\n'))
  })

  test('leaves input unsettled when it does not read', async () => {
    const prepare = mode === 'pty' ? 'stty raw -echo;' : ''
    const run = begin(`${prepare} printf ready; exec sleep 60`)
    await shown(run, 'ready')
    run.process.write(new Uint8Array(4_000_000))
    expect(run.settledBytes()).toBeLessThan(1_100_000)
    await run.process.terminate()
    await run.ended
    expect(run.settledBytes()).toBe(4_000_000)
    expect(run.events).toContain('inputClosed')
  })

  test('inherits no descriptor but the first three, with other sessions open', async () => {
    const others = Array.from({ length: 6 }, (_, index) =>
      record(start, ['cat'], { mode: index % 2 === 0 ? 'pipe' : 'pty' }),
    )
    const runs = Array.from({ length: 8 }, () => begin('exec ls /proc/self/fd'))
    for (const run of runs) {
      await run.ended
      // ls itself has the directory open as 3.
      expect(run.text().trim().split(/\s+/)).toEqual(['0', '1', '2', '3'])
    }
    for (const other of others) await other.process.terminate()
    await Promise.all(others.map((other) => other.ended))
  })

  test('has the given environment and the marker, and nothing else', async () => {
    const run = record(start, ['/usr/bin/env'], { mode, env: { PATH: TEST_PATH, GREETING: 'hi' } })
    await run.ended
    const names = run
      .text()
      .trim()
      .split(/\r?\n/)
      .map((line) => line.split('=')[0])
    expect(new Set(names)).toEqual(new Set(['GREETING', 'PATH', 'SANDWIRE_SESSION']))
  })

  test('starts in the given directory, under the name it was called by', async () => {
    const run = record(start, shell('pwd; echo "$0"'), { mode, cwd: '/usr' })
    await run.ended
    expect(run.text()).toBe(expected(mode, '/usr\nsh\n'))
  })

  test('has default signal dispositions', async () => {
    const run = begin('yes | head -n 1; grep SigIgn /proc/self/status')
    await run.ended
    expect(run.text()).toMatch(/^y\r?\nSigIgn:\s0+\r?\n$/)
  })

  test('runs an executable text file without an interpreter line in the shell', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'start-process-'))
    const script = join(folder, 'script')
    writeFileSync(script, 'echo "ran $1"\n', { mode: 0o755 })
    const run = record(start, [script, 'it'], { mode })
    await run.ended
    rmSync(folder, { recursive: true })
    expect(run.text()).toBe(expected(mode, 'ran it\n'))
  })

  test('receives a signal sent at once after the start', async () => {
    const run = begin('exec sleep 60')
    run.process.signal('SIGTERM')
    expect(await run.ended).toEqual({ code: null, signal: 'SIGTERM', truncated: false })
  })

  test('ignores a signal that has no known name', async () => {
    const run = record(start, ['cat'], { mode })
    run.process.signal('SIGNOPE')
    run.process.signal('TERM')
    run.process.closeInput()
    expect(await run.ended).toEqual({ code: 0, signal: null, truncated: false })
  })

  test('[X11] leaves no process behind when it is terminated', async () => {
    const marks = [1, 2, 3, 4, 6].map(ownSeconds)
    const [first, second, third, fourth, fifth] = marks
    const run = begin(
      `trap '' HUP TERM; sleep ${first} & setsid sleep ${second} & (setsid nohup sleep ${third} >/dev/null 2>&1 &); env -i sleep ${fourth} & (env -i setsid sleep ${fifth} >/dev/null 2>&1 &); echo ready; wait; sleep ${first}`,
    )
    await shown(run, 'ready')
    await eventually(() => marks.every((mark) => isRunning(`sleep ${mark}`)), { what: 'all sleepers' })
    await run.process.terminate()
    await run.ended
    expect(marks.filter((mark) => isRunning(`sleep ${mark}`))).toEqual([])
  })

  test('is terminated when it is stopped', async () => {
    const run = begin('echo ready; kill -STOP $$; echo continued')
    await shown(run, 'ready')
    await run.process.terminate()
    expect((await run.ended).signal).toBe('SIGHUP')
  })

  test('terminates processes that a normal exit left running', async () => {
    const run = begin(`trap '' HUP; setsid sleep ${ownSeconds(5)} >/dev/null 2>&1 </dev/null & exit 0`)
    await run.ended
    await run.process.terminate()
    expect(isRunning(`sleep ${ownSeconds(5)}`)).toBe(false)
  })

  test('accepts every call after it has ended', async () => {
    const run = begin('true')
    await run.ended
    run.process.write(bytes('x'))
    run.process.closeInput()
    run.process.resize(10, 10)
    run.process.signal('SIGINT')
    run.process.pause()
    run.process.resume()
    await run.process.terminate()
    expect(run.events.at(-1)).toBe('ended')
  })

  test(
    'leaks no descriptor and no child over 200 sessions',
    async () => {
      await begin('true').ended
      const before = await settledCounts()
      for (let round = 0; round < 25; round += 1) {
        const runs = Array.from({ length: 8 }, () => begin('echo hello; cat'))
        for (const run of runs) {
          run.process.write(bytes('line\n'))
          run.process.closeInput()
        }
        await Promise.all(runs.map((run) => run.ended))
      }
      await eventually(() => readProcessCounts(process.pid).fds <= before.fds, {
        what: 'descriptors to close',
      })
      await eventually(() => readProcessCounts(process.pid).children <= before.children, {
        what: 'children to go',
      })
    },
    TIMEOUT_MS,
  )
})

describe('a start', () => {
  const attempt = (argv: [string, ...string[]], changes: RecordOptions = {}): string => {
    try {
      record(start, argv, changes)
      return 'started'
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  test.each(['pipe', 'pty'] as const)('fails in %s mode when the command does not exist', (mode) => {
    expect(attempt(['no-such-command'], { mode })).toBe('Cannot start "no-such-command": not found in PATH')
  })

  test('fails when the working directory does not exist', () => {
    expect(attempt(['true'], { cwd: '/no/such' })).toBe(
      'Cannot start "true": working directory "/no/such" does not exist',
    )
  })
})

/** True when a process sleeps in a system call and has used no CPU time for a moment. */
function isBlocked(pid: number): boolean {
  const read = () => Bun.spawnSync(['cat', `/proc/${pid}/io`]).stdout.toString()
  const first = read()
  return first !== '' && first === read()
}

function isRunning(commandLine: string): boolean {
  return Bun.spawnSync(['pgrep', '-xf', commandLine]).exitCode === 0
}

async function settledCounts() {
  let last = readProcessCounts(process.pid)
  return eventually(
    () => {
      const next = readProcessCounts(process.pid)
      const isSame = next.fds === last.fds && next.children === last.children
      last = next
      return isSame ? next : undefined
    },
    { what: 'counts to settle' },
  )
}
