// Stands in for a sandboxd that says too much: lines without number, then one without end, all on stderr.

import { createServer } from 'node:net'

const LINES = 200_000
const ENDLESS_BYTES = 16 * 1024 * 1024

/** What it says at the end. */
export const LAST_LINE = 'last words'

function write(bytes: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => process.stderr.write(bytes, () => resolve()))
}

if (import.meta.main) {
  const listen = process.argv[process.argv.indexOf('--listen') + 1] ?? ''
  createServer().listen(listen.replace('unix:', ''), () => process.stdout.write('{"type":"ready"}\n'))
  const line = `${JSON.stringify({ level: 'info', event: 'noise', message: '\u001b[31m'.repeat(10) })}\n`
  for (let index = 0; index < LINES; index += 1000) await write(line.repeat(1000))
  await write(Buffer.alloc(ENDLESS_BYTES, '\u001b'))
  await write(`\n${LAST_LINE}\n`)
}
