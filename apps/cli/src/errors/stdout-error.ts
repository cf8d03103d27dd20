import { writeSync } from 'node:fs'
import { OutputError } from './errors.ts'
import { EXIT_FAILURE, exitCodeOfSignal } from './exit-code.ts'

/** Exits when stdout cannot be written: silently for a closed pipe, otherwise with an error. */
export function exitOnStdoutError(): void {
  process.stdout.on('error', ({ code = 'EIO' }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(exitCodeOfSignal('SIGPIPE'))
    const { message, hint } = new OutputError('stdout', code)
    try {
      writeSync(2, `sbx-stdio: ${message}\nhint: ${hint}\n`)
    } catch {
      // stderr is closed as well.
    }
    process.exit(EXIT_FAILURE)
  })
}
