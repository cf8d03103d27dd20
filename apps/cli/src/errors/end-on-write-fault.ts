import { writeSync } from 'node:fs'
import { EXIT_FAILURE, exitCodeOfSignal } from './exit-code.ts'
import { Unwritable } from './unwritable.ts'

/** Ends this program when standard output takes no more: without a word when whoever reads has seen enough. */
export function endOnWriteFault(): void {
  process.stdout.on('error', ({ code = 'EIO' }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(exitCodeOfSignal('SIGPIPE'))
    const { message, hint } = new Unwritable('stdout', code)
    try {
      writeSync(2, `sbx-stdio: ${message}\nhint: ${hint}\n`)
    } catch {
      // Nobody can be told.
    }
    process.exit(EXIT_FAILURE)
  })
}
