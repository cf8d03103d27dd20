import { createInterface } from 'node:readline/promises'
import { isatty } from 'node:tty'
import { exitCodeOfSignal } from '../exit-code.ts'
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

/** This process's own streams. */
export function openCommandIo(): CommandIo {
  // Whoever reads has seen enough.
  process.stdout.on('error', () => process.exit(exitCodeOfSignal('SIGPIPE')))
  return {
    print: (data) => void process.stdout.write(data),
    say: (talk) => void process.stderr.write(`sbx-stdio: ${talk}\n`),
    hint: (advice) => void process.stderr.write(`hint: ${advice}\n`),
    confirm: isatty(0) && isatty(2) ? confirm : undefined,
  }
}
