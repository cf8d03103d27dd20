import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import type { ProcessSpec } from '../process.ts'
import { record, type RecordedProcess, shell } from '../recorded-process.fixture.ts'
import { createStartProcess } from '../start-process.ts'
import { SMALL_CHUNK_BYTES } from './terminal-reader.ts'

const start = createStartProcess()
const CONTROL_C = '\x03'
const CONTROL_S = '\x13'

const begin = (argv: ProcessSpec['argv']) => record(start, argv, { mode: 'pty' })
const type = (run: RecordedProcess, text: string) => run.process.write(new TextEncoder().encode(text))
const shown = (run: RecordedProcess, text: string): Promise<unknown> =>
  eventually(() => run.text().includes(text), { what: `output ${JSON.stringify(text)}` })

/** Reads whole lines without echo, and prints the length of each. */
const LINE_LENGTHS = `stty -echo; echo ready; while IFS= read -r line; do echo "got \${#line}"; done; echo over`

test('a pty process has a controlling terminal of the given size', async () => {
  const run = record(start, shell('stty size; tty; ps -o pid=,sid=,tpgid= -p $$'), {
    mode: 'pty',
    cols: 93,
    rows: 31,
  })
  await run.ended
  expect(run.text()).toStartWith('31 93\r\n/dev/pts/')
  const pid = String(run.process.pid)
  expect(run.text().trim().split('\n').at(-1)?.trim().split(/\s+/)).toEqual([pid, pid, pid])
})

test('a pty process is interrupted by the key and by the signal', async () => {
  const run = begin(['bash', '--norc', '--noprofile', '-i'])
  for (const interrupt of [() => type(run, CONTROL_C), () => run.process.signal('SIGINT')]) {
    const before = run.text().length
    type(run, 'sh -c "echo rea""dy; exec sleep 60"\n')
    await eventually(() => run.text().slice(before).includes('ready'), { what: 'the job to run' })
    interrupt()
    type(run, 'echo status=$?\n')
    await eventually(() => run.text().slice(before).includes('status=130'), { what: 'the status' })
  }
  await run.process.terminate()
  await run.ended
})

test('a pty process sees a resize in order with its input', async () => {
  const run = begin(shell('stty -echo; echo ready; read a; stty size; read b; stty size'))
  await shown(run, 'ready')
  run.process.resize(101, 41)
  type(run, 'a\n')
  await shown(run, '41 101')
  run.process.resize(102, 42)
  type(run, 'b\n')
  await run.ended
  expect(run.text()).toContain('42 102')
})

test('a pty process gets SIGWINCH with a new size', async () => {
  const run = begin(shell('trap "stty size; exit 5" WINCH; echo ready; while :; do sleep 0.01; done'))
  await shown(run, 'ready')
  run.process.resize(101, 41)
  expect(await run.ended).toEqual({ code: 5, signal: null, truncated: false })
  expect(run.text()).toContain('41 101')
})

test('a pty process ends when its output was stopped by the user', async () => {
  const run = begin(shell('stty -echo; echo ready; head -c 1 >/dev/null; read line; exit 6'))
  await shown(run, 'ready')
  type(run, `\nx\n${CONTROL_S}`)
  expect(await run.ended).toEqual({ code: 6, signal: null, truncated: false })
})

test('a pty process receives a line of 4,095 bytes and refuses a longer one', async () => {
  const run = begin(shell(LINE_LENGTHS))
  await shown(run, 'ready')
  const input = `${'a'.repeat(4_095)}\n${'b'.repeat(4_096)}\nshort\n`
  type(run, input)
  run.process.closeInput()
  await run.ended
  expect(run.text()).toBe('ready\r\ngot 4095\r\ngot 5\r\nover\r\n')
  expect(run.refusals).toEqual(['line_too_long'])
  expect(run.settledBytes()).toBe(input.length)
})

test('[T1] a pty process refuses a long line sent in pieces, with one error per line', async () => {
  const run = begin(shell(LINE_LENGTHS))
  await shown(run, 'ready')
  for (const refusals of [1, 2]) {
    type(run, 'a'.repeat(3_000))
    type(run, 'a'.repeat(3_000))
    type(run, 'a'.repeat(10))
    type(run, 'a')
    await eventually(() => run.settledBytes() === refusals * 6_018 - 7, { what: 'the pieces' })
    expect(run.refusals).toHaveLength(refusals)
    type(run, '\nshort\n')
  }
  run.process.closeInput()
  await run.ended
  expect(run.text()).toBe('ready\r\ngot 5\r\ngot 5\r\nover\r\n')
  expect(run.refusals).toHaveLength(2)
})

test('[T1] a refused line ends with end of file, and later input is read', async () => {
  const run = begin(shell(`stty -echo; echo ready; cat; echo next; head -n 1; echo over`))
  await shown(run, 'ready')
  type(run, 'a'.repeat(5_000))
  run.process.closeInput()
  await shown(run, 'next')
  type(run, 'kept\n')
  await run.ended
  expect(run.text()).toBe('ready\r\nnext\r\nkept\r\nover\r\n')
})

test.each(['stty kill undef', 'stty kill undef erase undef'])(
  'a pty process never runs a part of a refused line after "%s"',
  async (setup) => {
    const run = begin(shell(`${setup}; ${LINE_LENGTHS}`))
    await shown(run, 'ready')
    type(run, `${'a'.repeat(5_000)}\nshort\n`)
    run.process.closeInput()
    await run.ended
    expect(run.text()).toBe('ready\r\ngot 5\r\nover\r\n')
  },
)

test('a pty process erases whole characters', async () => {
  const run = begin(shell('stty -echo; echo ready; read line; echo "$line" | od -An -tx1'))
  await shown(run, 'ready')
  type(run, 'aé\x7fb\n')
  await run.ended
  expect(run.text()).toContain('61 62 0a')
})

test.each([
  ['iutf8', 'привет мир ошибка'],
  ['-iutf8', 'привет мир ошибка'],
  ['-echo', '\x12'.repeat(2_500)],
])('a pty process refuses a long line with stty %s, whatever was erased in it', async (mode, written) => {
  const run = begin(shell(`stty ${mode}; echo ready; head -n 1 | wc -c; echo over`))
  await shown(run, 'ready')
  type(run, `${'a'.repeat(2_000)} ${written}\x17${'b'.repeat(2_100)}\n`)
  await eventually(() => run.refusals.length > 0, { what: 'the refusal' })
  type(run, 'short\n')
  await run.ended
  expect(run.text()).toContain('6\r\nover')
})

test('a pty process redraws after two resizes that were queued behind its input', async () => {
  const script = `stty raw -echo; trap 'echo WINCH' WINCH; echo ready; read -rn 1 key; head -c 99999 > /dev/null; while :; do sleep 0.01; done`
  const run = begin(['bash', '-c', script])
  await shown(run, 'ready')
  type(run, 'x'.repeat(100_000))
  for (const rows of [20, 21, 22, 23, 24]) run.process.resize(80, rows)
  await shown(run, 'WINCH')
  await run.process.terminate()
  await run.ended
})

/** Reads one key in raw mode, returns to canonical mode at once, then reads to the end of input, twice. */
const KEY_THEN_LINES = `
  use POSIX ":termios_h"; $| = 1;
  my $t = POSIX::Termios->new; $t->getattr(0); my $flags = $t->getlflag;
  $t->setlflag($flags & ~(ICANON | ECHO)); $t->setattr(0, TCSANOW); print "ready";
  sysread(STDIN, my $key, 1); $t->setlflag($flags); $t->setattr(0, TCSANOW); print "taken";
  sysread(STDIN, $key, 9); print "once"; sysread(STDIN, $key, 9); print "twice"`

test('a pty process sees one end of file after a key that it read in another mode', async () => {
  for (let count = 0; count < 40; count += 1) {
    const run = begin(['perl', '-e', KEY_THEN_LINES])
    await shown(run, 'ready')
    type(run, 'y')
    await shown(run, 'taken')
    run.process.closeInput()
    await shown(run, 'once')
    await Bun.sleep(5)
    expect(run.text()).not.toContain('twice')
    await run.process.terminate()
    await run.ended
  }
})

test('a pty process reads an unfinished line and then the end', async () => {
  const run = begin(shell('stty -echo; echo ready; cat; echo over'))
  await shown(run, 'ready')
  type(run, 'unfinished')
  run.process.closeInput()
  await run.ended
  expect(run.text()).toBe('ready\r\nunfinishedover\r\n')
})

test('a pty process receives many lines that together exceed the kernel buffer', async () => {
  const run = begin(shell('stty -echo; echo ready; sha256sum'))
  await shown(run, 'ready')
  const input = `${'x'.repeat(1_000)}\n`.repeat(300)
  type(run, input)
  run.process.closeInput()
  await run.ended
  expect(run.text()).toContain(new Bun.CryptoHasher('sha256').update(input).digest('hex'))
  expect(run.refusals).toEqual([])
})

test('a pty process that was paused delivers small chunks', async () => {
  const sizes: number[] = []
  let seen = 0
  const run: RecordedProcess = record(start, ['cat', '/dev/zero'], {
    mode: 'pty',
    onOutput: (process) => {
      sizes.push(run.stdout().length - seen)
      seen = run.stdout().length
      process.pause()
      setTimeout(() => process.resume(), 2)
    },
  })
  await eventually(() => sizes.length >= 40, { what: 'forty chunks' })
  expect(Math.max(...sizes)).toBeLessThanOrEqual(SMALL_CHUNK_BYTES)
  await run.process.terminate()
  await run.ended
})

test('a pty process reads nothing ahead while paused, so that an interrupt discards its output', async () => {
  const run = begin(shell(`trap 'echo answer; exit 7' INT; echo ready; cat /dev/zero`))
  await eventually(() => run.stdout().length > 100_000, { what: 'the flood' })
  run.process.pause()
  const before = run.stdout().length
  await eventually(() => isChildBlocked(run.process.pid), { what: 'the writer to block' })
  type(run, CONTROL_C)
  run.process.resume()
  expect(await run.ended).toEqual({ code: 7, signal: null, truncated: false })
  expect(run.text()).toEndWith('answer\r\n')
  // Of the 64 KiB and more that it holds, the kernel discards all but the page that is ready to be read; what the writer puts
  // there before it has died, a page or two, is new.
  expect(run.stdout().length - before).toBeLessThan(5 * 4_096)
})

/** True when the only child of a process has written nothing for a moment. */
function isChildBlocked(pid: number): boolean {
  const child = Bun.spawnSync(['pgrep', '-P', String(pid)])
    .stdout.toString()
    .trim()
  const read = () => Bun.spawnSync(['cat', `/proc/${child}/io`]).stdout.toString()
  const first = read()
  return first !== '' && first === read()
}
