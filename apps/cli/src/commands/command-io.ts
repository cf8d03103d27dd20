import { createInterface } from 'node:readline/promises'
import { isatty } from 'node:tty'
import { exitCodeOfSignal } from '../exit-code.ts'
import { askSecret } from '../ask-secret.ts'
import { openPage } from '../open-page.ts'
import { readBounded } from '../read-bounded.ts'
import type { CommandIo } from './command.ts'

async function confirm(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  // Closed without an answer: Ctrl-D, or Ctrl-C.
  const closed = new Promise<string>((resolve) => asking.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([asking.question(`${question} [y/N] `), closed])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    asking.close()
  }
}

/** Standard input that a command reads is a few lines. */
const MAX_INPUT_BYTES = 64 * 1024

function openInterruption(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  process.once('SIGINT', stop)
  return { signal: controller.signal, [Symbol.dispose]: () => void process.off('SIGINT', stop) }
}

/** Becomes an attach. */
async function attach(argv: readonly string[]): Promise<number> {
  const [{ parseArguments }, { run }] = await Promise.all([import('../arguments.ts'), import('../run.ts')])
  const options = parseArguments(argv)
  if (options.kind !== 'run') throw new Error('Cannot attach: the words are not understood')
  // Reading standard input would keep this process.
  return process.exit(await run(options, process.env))
}

/** This process's own streams. */
export function openCommandIo(): CommandIo {
  // Whoever reads has seen enough.
  process.stdout.on('error', () => process.exit(exitCodeOfSignal('SIGPIPE')))
  return {
    print: (data) => void process.stdout.write(data),
    say: (talk) => void process.stderr.write(`sbx-stdio: ${talk}\n`),
    hint: (advice) => void process.stderr.write(`hint: ${advice}\n`),
    show: (lines) => void process.stderr.write(lines),
    askSecret: isatty(0) && isatty(2) ? askSecret : undefined,
    readInput: () => readBounded(new Response(Bun.stdin.stream()), MAX_INPUT_BYTES),
    openPage: (url) => openPage(url, process.env),
    attach: isatty(0) ? attach : undefined,
    openInterruption,
    confirm: isatty(0) && isatty(2) ? confirm : undefined,
  }
}
