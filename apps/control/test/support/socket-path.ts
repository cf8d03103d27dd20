import { tmpdir } from 'node:os'
import path from 'node:path'

/** A unique path for a Unix socket. Bun removes the socket when it stops listening. */
export function socketPath(): string {
  return path.join(tmpdir(), `stand-in-${crypto.randomUUID()}.sock`)
}
