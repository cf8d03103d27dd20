// A sandboxd that floods stderr: very many lines, then one very long line.

import { createServer } from 'node:net'

const LINES = 200_000
const LONG_LINE_BYTES = 16 * 1024 * 1024

/** The last line of its output. */
export const LAST_LINE = 'last line'

function write(bytes: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => process.stderr.write(bytes, () => resolve()))
}

if (import.meta.main) {
  const listen = process.argv[process.argv.indexOf('--listen') + 1] ?? ''
  createServer().listen(listen.replace('unix:', ''), () => process.stdout.write('{"type":"ready"}\n'))
  const line = `${JSON.stringify({ level: 'info', event: 'noise', message: '\u001b[31m'.repeat(10) })}\n`
  for (let index = 0; index < LINES; index += 1000) await write(line.repeat(1000))
  await write(Buffer.alloc(LONG_LINE_BYTES, '\u001b'))
  await write(`\n${LAST_LINE}\n`)
}
