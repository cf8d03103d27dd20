import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually, patternAt } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { startWireServer, type WireServer } from './support/wire-server.ts'

/** After OpenSSH's regression tests: transfer, exit-status, stderr-after-eof, broken-pipe. */

let sandboxd: WireServer

beforeAll(async () => {
  sandboxd = await startWireServer()
})
afterAll(() => sandboxd.stop())

const MODES = ['pipe', 'pty'] as const
/** Makes a terminal transparent and prints a marker when done. */
const RAW = "stty raw -echo; printf '<ready>'; "
const READY = '<ready>'

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function plainUrl(script: string, mode = 'pipe'): string {
  const query = new URLSearchParams([
    ['cmd', 'sh'],
    ['arg', '-c'],
    ['arg', script],
    ['mode', mode],
  ])
  return sandboxd.socketUrl(`/attach?${query}`)
}

function openPlain(script: string, mode = 'pipe') {
  return connectPlain(plainUrl(script, mode), { headers: sandboxd.headers })
}

describe('transfer', () => {
  const sizes = [
    { blockBytes: 1, totalBytes: 24_000 },
    { blockBytes: 10, totalBytes: 40_000 },
    { blockBytes: 100, totalBytes: 200_000 },
    { blockBytes: 1024, totalBytes: 1_000_000 },
    { blockBytes: 16 * 1024, totalBytes: 4_000_000 },
    { blockBytes: 64 * 1024, totalBytes: 8_000_000 },
    { blockBytes: 256 * 1024, totalBytes: 16_000_000 },
    { blockBytes: 1024 * 1024, totalBytes: 16_000_000 },
  ]
  test.each(sizes)(
    '[R14] transfers $totalBytes bytes in blocks of $blockBytes both ways through a pipe',
    async (size) => {
      const { blockBytes, totalBytes } = size
      const input = patternAt(blockBytes, 0, totalBytes)
      await using client = runShell(sandboxd, `dd bs=${blockBytes} iflag=fullblock status=none`)
      await client.sendInBlocks(input, blockBytes)
      client.handle.eof()
      expect(await client.exit).toMatchObject({
        code: 0,
        signal: null,
        truncated: false,
        outputEnd: totalBytes,
      })
      expect(client.stdout.length).toBe(totalBytes)
      expect(client.stdout.sha256).toBe(sha256(input))
    },
  )

  test.each(
    sizes.map(({ blockBytes, totalBytes }) => ({ blockBytes, totalBytes: Math.min(totalBytes, 2_000_000) })),
  )(
    '[R14] transfers $totalBytes bytes in blocks of $blockBytes both ways through a raw terminal',
    async (size) => {
      const { blockBytes, totalBytes } = size
      const input = patternAt(blockBytes + 1, 0, totalBytes)
      await using client = runShell(sandboxd, `${RAW}head -c ${totalBytes}`, { mode: 'pty' })
      await client.waitFor(READY)
      await client.sendInBlocks(input, blockBytes)
      expect(await client.exit).toMatchObject({ code: 0, truncated: false })
      expect(sha256(client.stdout.bytes.subarray(READY.length))).toBe(sha256(input))
    },
  )

  test('[P1] transfers bytes both ways concurrently for a plain client', async () => {
    const input = patternAt(7, 0, 5_000_000)
    await using client = await openPlain('cat')
    for (let from = 0; from < input.length; from += 50_000) {
      await client.sendInput(input.subarray(from, from + 50_000))
    }
    await client.sendEof()
    expect(await client.closed).toEqual({ code: 1000, reason: '' })
    expect(client.stdout.sha256).toBe(sha256(input))
    expect(client.exit).toEqual({ type: 'exit', code: 0 })
    expect(client.outputAtExit).toBe(input.length)
  })

  test('[R3] keeps the order of stdout and stderr within each stream', async () => {
    const script = 'i=0; while [ $i -lt 500 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done'
    await using client = runShell(sandboxd, script)
    expect(await client.exit).toMatchObject({ code: 0 })
    const lines = (name: string) => Array.from({ length: 500 }, (_, index) => `${name}${index}\n`).join('')
    expect(client.stdout.text).toBe(lines('out'))
    expect(client.stderr.text).toBe(lines('err'))
  })

  test('carries every byte value, NUL and 0xFF included', async () => {
    const input = Uint8Array.from({ length: 256 * 16 }, (_, index) => index & 0xff)
    await using piped = runShell(sandboxd, 'cat')
    await piped.send(input)
    piped.handle.eof()
    await piped.exit
    expect(piped.stdout.sha256).toBe(sha256(input))
    await using typed = runShell(sandboxd, `${RAW}head -c ${input.length}`, { mode: 'pty' })
    await typed.waitFor(READY)
    await typed.send(input)
    await typed.exit
    expect(sha256(typed.stdout.bytes.subarray(READY.length))).toBe(sha256(input))
  })

  test.each(MODES)('preserves UTF-8 that is split at every byte (%s)', async (mode) => {
    const text = 'aé漢🙂ñ\u{1F468}\u200D\u{1F469}ß'
    const bytes = new TextEncoder().encode(text)
    const octal = [...bytes].map((byte) => `printf '\\${byte.toString(8)}'; sleep 0.001; `).join('')
    await using client = runShell(sandboxd, `${mode === 'pty' ? 'stty raw -echo; ' : ''}${octal}`, { mode })
    expect(await client.exit).toMatchObject({ code: 0 })
    expect(client.stdout.text).toBe(text)
  })

  test('accepts UTF-8 input split at every byte', async () => {
    const bytes = new TextEncoder().encode('aé漢🙂\u{1F468}\u200D\u{1F469}')
    await using client = runShell(sandboxd, 'cat')
    for (const byte of bytes) await client.send(Uint8Array.of(byte))
    client.handle.eof()
    await client.exit
    expect(client.stdout.bytes).toEqual(Buffer.from(bytes))
  })

  test('accepts a paste of 1 MiB into a raw terminal', async () => {
    const paste = patternAt(99, 0, 1024 * 1024)
    await using client = runShell(sandboxd, `${RAW}head -c ${paste.length} | sha256sum`, { mode: 'pty' })
    await client.waitFor(READY)
    await client.send(paste)
    await client.exit
    expect(client.text).toContain(sha256(paste))
  })
})

describe('end of input', () => {
  test.each(MODES)('[I13] ends `cat` (%s)', async (mode) => {
    await using client = runShell(sandboxd, 'stty -echo 2>/dev/null; printf R; cat; echo done', { mode })
    await client.waitFor('R')
    await client.send('line\n')
    client.handle.eof()
    expect(await client.exit).toMatchObject({ code: 0 })
    expect(client.text.replaceAll('\r', '')).toBe('Rline\ndone\n')
  })

  test('[T3] delivers an unfinished line of a terminal first', async () => {
    await using client = runShell(sandboxd, 'stty -echo; printf R; cat; echo done', { mode: 'pty' })
    await client.waitFor('R')
    await client.send('half')
    client.handle.eof()
    expect(await client.exit).toMatchObject({ code: 0 })
    expect(client.text.replaceAll('\r', '')).toBe('Rhalfdone\n')
  })

  test('[P2] ends `wc` for a plain client', async () => {
    await using client = await openPlain('wc -c')
    await client.sendInput('12345')
    await client.sendEof()
    await client.closed
    expect(client.stdout.text.trim()).toBe('5')
  })

  test('is not required by a process that never reads', async () => {
    await using client = runShell(sandboxd, 'exec 0<&-; echo ok')
    expect(await client.exit).toMatchObject({ code: 0 })
    expect(client.text).toBe('ok\n')
  })
})

describe('exit status', () => {
  const codes = [0, 1, 4, 5, 44, 255]
  for (const mode of MODES) {
    test.each(codes)(`[X5] is %d as returned by the process (${mode})`, async (code) => {
      await using client = runShell(sandboxd, `echo out; exit ${code}`, { mode })
      expect(await client.exit).toMatchObject({ code, signal: null, truncated: false })
      expect(client.text.trim()).toBe('out')
    })

    test.each(['SIGKILL', 'SIGTERM', 'SIGSEGV'])(`[X5] names %s (${mode})`, async (signal) => {
      await using client = runShell(sandboxd, `ulimit -c 0; echo out; kill -${signal.slice(3)} $$`, { mode })
      expect(await client.exit).toMatchObject({ code: null, signal, truncated: false })
      expect(client.text.trim()).toBe('out')
    })
  }

  test.each(codes)('[X5] is %d when stdout closed long before', async (code) => {
    await using client = runShell(sandboxd, `echo out; exec >&-; sleep 0.05; exit ${code}`)
    expect(await client.exit).toMatchObject({ code, truncated: false })
    expect(client.text).toBe('out\n')
  })

  test('[P3] is 128 plus the signal number for a plain client', async () => {
    await using client = await openPlain('kill -KILL $$')
    expect((await client.closed).code).toBe(1000)
    expect(client.exit).toEqual({ type: 'exit', code: 137, signal: 'SIGKILL' })
  })

  test.each([
    { cmd: 'no-such-command-here', code: 127, warning: 'command_not_found' },
    { cmd: '/etc/passwd', code: 126, warning: 'command_not_executable' },
  ])('[X6] is $code for "$cmd", with the reason', async ({ cmd, code, warning }) => {
    await using client = new Attached(sandboxd, { cmd })
    expect(await client.exit).toMatchObject({ code })
    expect(client.warnings).toEqual([warning])
    await using plain = await connectPlain(sandboxd.socketUrl(`/attach?cmd=${encodeURIComponent(cmd)}`), {
      headers: sandboxd.headers,
    })
    await plain.closed
    expect(plain.messagesOf('error')).toMatchObject([{ code: warning }])
    expect(plain.exit).toMatchObject({ code })
  })
})

describe('output', () => {
  test('[X8] of stderr is delivered after stdout has ended', async () => {
    await using client = runShell(sandboxd, 'echo one; exec >&-; sleep 0.05; echo two >&2; exit 3')
    expect(await client.exit).toMatchObject({ code: 3, outputEnd: 8 })
    expect([client.stdout.text, client.stderr.text]).toEqual(['one\n', 'two\n'])
  })

  test.each(MODES)('[X8] of a grandchild is delivered completely (%s)', async (mode) => {
    const script = `trap '' HUP; echo first; (sleep 0.4; echo last) & exit 7`
    await using client = runShell(sandboxd, script, { mode })
    expect(await client.exit).toMatchObject({ code: 7, truncated: false })
    expect(client.text.replaceAll('\r', '')).toBe('first\nlast\n')
  })

  test.each(MODES)('[X9] is marked truncated when a silent grandchild keeps it open (%s)', async (mode) => {
    await using client = runShell(sandboxd, `trap '' HUP; echo first; sleep 600 & exit 7`, { mode })
    expect(await client.exit).toMatchObject({ code: 7, truncated: true })
    expect(client.text.trim()).toBe('first')
  })

  test.each(MODES)('[X10] is marked truncated when a grandchild writes endlessly (%s)', async (mode) => {
    await using client = runShell(sandboxd, `trap '' HUP; yes & exit 7`, { mode, output: 'digest' })
    expect(await client.exit).toMatchObject({ code: 7, truncated: true })
    expect(client.stdout.length).toBeGreaterThan(1_000_000)
    expect(client.stdout.length).toBeLessThan(32 * 1024 * 1024)
  })

  test.each(MODES)('[X1] is complete at exit in 40 short runs (%s)', async (mode) => {
    const wanted = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join('')
    const digest = sha256(new TextEncoder().encode(mode === 'pty' ? wanted.replaceAll('\n', '\r\n') : wanted))
    const runOne = async () => {
      const client = runShell(sandboxd, 'seq 1 20000; exit 42', { mode, output: 'digest', keepSeconds: 0 })
      const { code, truncated } = await client.exit
      return `${code} ${truncated} ${client.stdout.sha256}`
    }
    const worker = async () => {
      const results: string[] = []
      for (let run = 0; run < 5; run++) results.push(await runOne())
      return results
    }
    const results = (await Promise.all(Array.from({ length: 8 }, worker))).flat()
    expect(results).toHaveLength(40)
    expect(new Set(results)).toEqual(new Set([`42 false ${digest}`]))
  })

  test('[P3] precedes the exit of a plain client in 50 runs', async () => {
    for (let run = 0; run < 50; run++) {
      await using client = await openPlain('seq 1 20000; exit 42')
      expect((await client.closed).code).toBe(1000)
      expect(client.exit).toEqual({ type: 'exit', code: 42 })
      expect(client.stdout.length).toBe(108_894)
      expect(client.outputAtExit).toBe(108_894)
      expect(client.violations).toEqual([])
    }
  })
})

describe('broken pipe', () => {
  test('[I8] is reported and blocks nothing', async () => {
    await using client = runShell(sandboxd, 'exec 0<&-; echo closed; sleep 0.2; echo alive; exit 9')
    await client.waitFor('closed')
    await client.sendInBlocks(patternAt(1, 0, 3_000_000), 64 * 1024)
    expect(await client.exit).toMatchObject({ code: 9 })
    expect(client.text).toBe('closed\nalive\n')
    await eventually(() => client.inputLost.length > 0, { what: 'the lost input' })
    expect(client.inputLost[0]?.why).toBe('stdinClosed')
  })

  test('[I9] during input blocks nothing', async () => {
    await using client = runShell(sandboxd, 'head -c 10000 >/dev/null; exec 0<&-; sleep 0.2; exit 9')
    await client.sendInBlocks(patternAt(1, 0, 3_000_000), 64 * 1024)
    expect(await client.exit).toMatchObject({ code: 9 })
    expect(client.inputLost.some(({ why }) => why === 'stdinClosed')).toBe(true)
  })

  test('sends SIGPIPE to the process by default', async () => {
    await using client = runShell(sandboxd, 'yes | head -n 3; echo "status $?"')
    expect(await client.exit).toMatchObject({ code: 0 })
    expect(client.text).toBe('y\ny\ny\nstatus 0\n')
  })

  test('does not block a plain client', async () => {
    await using client = await openPlain('exec 0<&-; sleep 0.2; exit 9')
    await client.sendInput(patternAt(1, 0, 900_000))
    await client.closed
    expect(client.exit).toEqual({ type: 'exit', code: 9 })
  })
})

test('processes can open /dev/stdin, /dev/stdout and /dev/stderr', async () => {
  await using client = runShell(sandboxd, 'cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr')
  await client.send('in\n')
  client.handle.eof()
  expect(await client.exit).toMatchObject({ code: 0 })
  expect([client.stdout.text, client.stderr.text]).toEqual(['in\nout\n', 'err\n'])
})
