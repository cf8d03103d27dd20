import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import { RawTerminal } from '../attach/raw-terminal.ts'
import { stdoutColumns } from '../attach/terminal-size.ts'
import type { CommandIo } from './command.ts'
import { exitOnStdoutError } from '../errors/stdout-error.ts'
import { InterruptedError } from '../errors/errors.ts'
import { readBounded } from '../server/response.ts'

const CTRL_C = 0x03
const CTRL_D = 0x04
const CTRL_U = 0x15
const ENDS = new Set([0x0a, 0x0d])
const ERASES = new Set([0x08, 0x7f])
const MAX_BYTES = 4096

/** Applies one typed byte to a line. */
export function editLine(line: readonly number[], byte: number): readonly number[] {
  if (ERASES.has(byte)) return line.slice(0, -1)
  if (byte === CTRL_U) return []
  return byte < 0x20 || line.length >= MAX_BYTES ? line : [...line, byte]
}

/** Reads a line from the terminal without echo; undefined for Ctrl-D. Throws `InterruptedError` for Ctrl-C. */
function promptSecret(question: string): string | undefined {
  const fd = openSync('/dev/tty', 'r+')
  using terminal = new RawTerminal(fd)
  try {
    writeSync(fd, question)
    let line: readonly number[] = []
    const buffer = new Uint8Array(256)
    while (terminal.isRaw) {
      const read = readSync(fd, buffer)
      for (const byte of buffer.subarray(0, read)) {
        if (ENDS.has(byte)) return Buffer.from(line).toString('utf8')
        if (byte === CTRL_C) throw new InterruptedError()
        if (byte === CTRL_D && line.length === 0) return undefined
        line = editLine(line, byte)
      }
      if (read === 0) return undefined
    }
    return undefined
  } finally {
    terminal.leave()
    writeSync(fd, '\n')
    closeSync(fd)
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** The program that opens a page in a browser; undefined without a local graphical session. */
export function browserCommand(env: Environment, platform: string): string | undefined {
  const isRemote = (env['SSH_CONNECTION'] ?? env['SSH_TTY'] ?? '') !== ''
  if (platform === 'darwin') return isRemote ? undefined : 'open'
  const hasDisplay = (env['WAYLAND_DISPLAY'] ?? '') !== '' || (env['DISPLAY'] ?? '') !== ''
  return platform === 'linux' && hasDisplay ? 'xdg-open' : undefined
}

/** Opens a page, if stdout is a terminal in a graphical session. The address is printed in any case. */
function openBrowser(url: string, env: Environment): void {
  const opener = isatty(1) ? browserCommand(env, process.platform) : undefined
  if (opener === undefined) return
  try {
    Bun.spawn([opener, url], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).unref()
  } catch {
    // The program is not installed.
  }
}

async function confirm(question: string): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  const ended = new Promise<'closed' | 'interrupted'>((resolve) => {
    prompt.once('SIGINT', () => resolve('interrupted'))
    prompt.once('close', () => resolve('closed'))
  })
  try {
    const response = prompt.question(`${question} [y/N] `).then((text) => ({ text }))
    const first = await Promise.race([response, ended])
    if (typeof first === 'object') return /^y(es)?$/i.test(first.text.trim())
    process.stderr.write('\n')
    if (first === 'interrupted') throw new InterruptedError()
    return false
  } finally {
    prompt.close()
  }
}

/** Commands read a few lines of stdin at most. */
const MAX_INPUT_BYTES = 64 * 1024

function openInterruption(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const undo = new DisposableStack()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const stop = (): void => controller.abort(signal)
    process.once(signal, stop)
    undo.defer(() => void process.off(signal, stop))
  }
  return { signal: controller.signal, [Symbol.dispose]: () => undo.dispose() }
}

/** Attaches in this process and exits with the exit code. */
async function attach(argv: readonly string[]): Promise<number> {
  const [{ parseArguments }, { runAttach }] = await Promise.all([
    import('../options/attach-options.ts'),
    import('../attach/run.ts'),
  ])
  const options = parseArguments(argv)
  if (options.kind !== 'run') throw new Error('Cannot attach: invalid arguments')
  // A pending read of stdin would keep the process alive.
  return process.exit(await runAttach(options, process.env))
}

/** Reads keys without echo. Unlike `RawTerminal`, line breaks of output still return the cursor. */
function openKeyboard(onKeys: (keys: string) => void): Disposable {
  const decoder = new TextDecoder()
  const receive = (data: Uint8Array): void => onKeys(decoder.decode(data, { stream: true }))
  process.stdin.setRawMode(true)
  process.stdin.on('data', receive)
  process.stdin.resume()
  return {
    [Symbol.dispose]: () => {
      process.stdin.off('data', receive)
      process.stdin.setRawMode(false)
      process.stdin.pause()
    },
  }
}

/** The streams of this process. */
export function openCommandIo(): CommandIo {
  exitOnStdoutError()
  return {
    print: (data) => void process.stdout.write(data),
    columns: stdoutColumns(),
    info: (message) => void process.stderr.write(`sbx-stdio: ${message}\n`),
    hint: (hint) => void process.stderr.write(`hint: ${hint}\n`),
    write: (lines) => void process.stderr.write(lines),
    promptSecret: isatty(0) && isatty(2) ? promptSecret : undefined,
    readStdin: () => readBounded(new Response(Bun.stdin.stream()), MAX_INPUT_BYTES),
    openBrowser: (url) => openBrowser(url, process.env),
    attach: isatty(0) ? attach : undefined,
    wait: (ms, signal) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
    openInterruption,
    openKeyboard: isatty(0) && isatty(2) ? openKeyboard : undefined,
    progress: isatty(2)
      ? {
          write: (text) => void process.stderr.write(text),
          columns: () => process.stderr.getWindowSize()[0],
        }
      : undefined,
    confirm: isatty(0) && isatty(2) ? confirm : undefined,
  }
}
