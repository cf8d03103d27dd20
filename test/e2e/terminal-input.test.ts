import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually, isAlive } from '@sandwire/testing'
import { type Attached, readShell, runShell } from './support/attached.ts'
import { startWireServer, type WireServer } from './support/wire-server.ts'

let sandboxd: WireServer

beforeAll(async () => {
  sandboxd = await startWireServer()
})
afterAll(() => sandboxd.stop())

async function viewOf(client: Attached): Promise<{ pid: number | null; output: { end: number } }> {
  const response = await sandboxd.fetch(`/sessions/${client.session}`)
  return (await response.json()) as { pid: number | null; output: { end: number } }
}

/** Longest line in canonical mode, without its newline. */
const MAX_LINE_CHARS = 4_095

describe('a line in canonical mode', () => {
  const script = `stty -echo; printf '<ready>'; while read -r line; do echo "\${#line}:\${line%"\${line#?}"}"; done`

  test.each([1, 255, 1024, 4_000, MAX_LINE_CHARS - 1])(
    'of %d characters is read completely',
    async (length) => {
      await using client = runShell(sandboxd, script, { mode: 'pty' })
      await client.waitFor('<ready>')
      await client.send(`${'a'.repeat(length)}\n`)
      await client.waitFor(`${length}:a`)
      expect(client.warnings).toEqual([])
    },
  )

  test.each([MAX_LINE_CHARS + 1, 5_000, 100_000])(
    '[T1] of %d characters is refused completely',
    async (length) => {
      await using client = runShell(sandboxd, script, { mode: 'pty' })
      await client.waitFor('<ready>')
      await client.send(`${'a'.repeat(length)}\n`)
      await eventually(() => client.warnings.length > 0, { what: 'the refusal' })
      await client.send('bc\n')
      await client.waitFor('2:b')
      expect(client.warnings).toEqual(['line_too_long'])
      expect(client.text.replaceAll('\r', '')).toBe('<ready>2:b\n')
    },
  )

  test('[T1] that is too long does not run a command hidden in it', async () => {
    await using client = runShell(sandboxd, 'stty -echo; printf "<ready>"; exec sh', { mode: 'pty' })
    await client.waitFor('<ready>')
    await client.send(`echo start ${'x'.repeat(5_000)}; touch pwned\n`)
    await eventually(() => client.warnings.includes('line_too_long'), { what: 'the refusal' })
    await client.send('echo "al""ive"; ls\n')
    await client.waitFor('alive')
    expect(await readShell(sandboxd, 'test -e pwned || echo none')).toBe('none\n')
    expect(client.text).not.toContain('start')
  })

  // The tunnel into a sprite refuses plain clients.
  test.skipIf(process.env['SANDWIRE_E2E'] === 'sprites')(
    '[T1] that is too long is an error for a plain client too',
    async () => {
      const query = new URLSearchParams([
        ['cmd', 'sh'],
        ['arg', '-c'],
        ['arg', script],
        ['mode', 'pty'],
      ])
      await using client = await connectPlain(sandboxd.socketUrl(`/attach?${query}`), {
        headers: sandboxd.headers,
      })
      await eventually(() => client.stdout.text.includes('<ready>'), { what: 'the program' })
      await client.sendInput(`${'a'.repeat(6_000)}\nbc\n`)
      await eventually(() => client.stdout.text.includes('2:b'), { what: 'the next line' })
      expect(client.messagesOf('error')[0]).toMatchObject({ code: 'line_too_long' })
      expect(client.stdout.text.replaceAll('\r', '')).toBe('<ready>2:b\n')
    },
  )

  test('[T1] sent in many pieces is still one line', async () => {
    await using client = runShell(sandboxd, script, { mode: 'pty' })
    await client.waitFor('<ready>')
    for (let piece = 0; piece < 40; piece++) await client.send('a'.repeat(100))
    await client.send('\n')
    await client.waitFor('4000:a')
    for (let piece = 0; piece < 50; piece++) await client.send('a'.repeat(100))
    await client.send('\nbc\n')
    await client.waitFor('2:b')
    expect(client.text).not.toContain('5000:')
    expect(client.warnings).toEqual(['line_too_long'])
  })
})

describe('keys', () => {
  test.each([
    ['Ctrl-C', '\x03', 'SIGINT'],
    ['Ctrl-\\', '\x1c', 'SIGQUIT'],
  ])('%s reaches the foreground process', async (_, key, signal) => {
    await using client = runShell(sandboxd, `ulimit -c 0; printf '<ready>'; exec sleep 600`, { mode: 'pty' })
    await client.waitFor('<ready>')
    await client.send(key)
    expect(await client.exit).toMatchObject({ code: null, signal })
  })

  test('Ctrl-Z stops a job and returns to the shell', async () => {
    await using client = runShell(sandboxd, 'export PS1="<ps>"; exec bash --norc --noprofile -i', {
      mode: 'pty',
    })
    await client.waitFor('<ps>')
    // A signal key discards earlier input, so the job must have started.
    await client.send(`sh -c 'printf "<%s>" job; exec sleep 600'\n`)
    await client.waitFor('<job>')
    await client.send('\x1a')
    await client.waitFor('Stopped')
    await client.send('kill %1; echo "al""ive"\n')
    await client.waitFor('alive')
  })

  test('Ctrl-D at the start of a line ends the input', async () => {
    await using client = runShell(sandboxd, `printf '<ready>'; cat; echo over`, { mode: 'pty' })
    await client.waitFor('<ready>')
    await client.send('\x04')
    expect(await client.exit).toMatchObject({ code: 0 })
    expect(client.text).toContain('over')
  })
})

describe('a terminal', () => {
  test('has isatty, size, TERM and job control', async () => {
    const script =
      'test -t 0 && test -t 1 && test -t 2 && stty size && echo "$TERM" && ps -o tpgid=,pgid= -p $$ | tr -s " "'
    await using client = runShell(sandboxd, script, { mode: 'pty', cols: 91, rows: 17 })
    expect(await client.exit).toMatchObject({ code: 0 })
    const [size, term, groups] = client.text.trim().split('\r\n')
    expect([size, term]).toEqual(['17 91', 'xterm-256color'])
    const [foreground, own] = (groups ?? '').trim().split(' ')
    expect(foreground).toBe(own)
  })

  test('[X1] delivers all output of a child that exits while the reader stalls', async () => {
    const script = `stty raw -echo; head -c 3000000 /dev/zero | tr '\\0' z; printf '<end>'; exit 3`
    await using client = runShell(sandboxd, script, { mode: 'pty', isFrozen: true, overflow: 'block' })
    await client.isAttached()
    await eventually(async () => (await viewOf(client)).output.end > 60_000, { what: 'the pause' })
    client.thaw()
    expect(await client.exit).toMatchObject({ code: 3, outputEnd: 3_000_005, truncated: false })
    expect(client.stdout.length).toBe(3_000_005)
    expect(client.text.endsWith('z<end>')).toBe(true)
  })

  test('[X1] loses no output when its child exits while output is paused', async () => {
    // Small enough for the kernel's buffer, so the child exits while nothing is read.
    for (let run = 0; run < 5; run++) {
      const script = `stty raw -echo; head -c 3000 /dev/zero | tr '\\0' z; printf '<end>'; exit 3`
      await using client = runShell(sandboxd, script, { mode: 'pty', isFrozen: true, windowBytes: 500 })
      await client.isAttached()
      const { pid } = await viewOf(client)
      await eventually(() => pid === null || !isAlive(pid), { what: 'the child to exit' })
      client.thaw()
      expect(await client.exit).toMatchObject({ code: 3, outputEnd: 3_005, truncated: false })
      expect(client.text).toBe(`${'z'.repeat(3_000)}<end>`)
    }
  })
})
