import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import { endOnWriteFault } from '../errors/end-on-write-fault.ts'
import { askSecret } from '../options/ask-secret.ts'
import { Interrupted } from '../errors/interrupted.ts'
import { openPage } from '../server/open-page.ts'
import { readBounded } from '../server/read-bounded.ts'
import { terminalColumns } from '../attach/window-size.ts'
import type { CommandIo } from './command.ts'

async function confirm(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  const left = new Promise<'closed' | 'interrupted'>((resolve) => {
    asking.once('SIGINT', () => resolve('interrupted'))
    asking.once('close', () => resolve('closed'))
  })
  try {
    const answer = asking.question(`${question} [y/N] `).then((text) => ({ text }))
    const first = await Promise.race([answer, left])
    if (typeof first === 'object') return /^y(es)?$/i.test(first.text.trim())
    process.stderr.write('\n')
    if (first === 'interrupted') throw new Interrupted()
    return false
  } finally {
    asking.close()
  }
}

/** Standard input that a command reads is a few lines. */
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

/** Becomes an attach. */
async function attach(argv: readonly string[]): Promise<number> {
  const [{ parseArguments }, { run }] = await Promise.all([
    import('../options/arguments.ts'),
    import('../run.ts'),
  ])
  const options = parseArguments(argv)
  if (options.kind !== 'run') throw new Error('Cannot attach: the words are not understood')
  // Reading standard input would keep this process.
  return process.exit(await run(options, process.env))
}

/** This process's own streams. */
export function openCommandIo(): CommandIo {
  endOnWriteFault()
  return {
    print: (data) => void process.stdout.write(data),
    columns: terminalColumns(),
    say: (talk) => void process.stderr.write(`sbx-stdio: ${talk}\n`),
    hint: (advice) => void process.stderr.write(`hint: ${advice}\n`),
    show: (lines) => void process.stderr.write(lines),
    askSecret: isatty(0) && isatty(2) ? askSecret : undefined,
    readInput: () => readBounded(new Response(Bun.stdin.stream()), MAX_INPUT_BYTES),
    openPage: (url) => openPage(url, process.env),
    attach: isatty(0) ? attach : undefined,
    wait: (ms, signal) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
    openInterruption,
    progress: isatty(2)
      ? {
          write: (text) => void process.stderr.write(text),
          columns: () => process.stderr.getWindowSize()[0],
        }
      : undefined,
    confirm: isatty(0) && isatty(2) ? confirm : undefined,
  }
}
