import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { forwardPort } from './forward-port.ts'
import { createLog } from './log.ts'

test('forwardPort logs that the port is in use, and does not fail', async () => {
  const lines: string[] = []
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(0),
  )
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  const address = holder.address()
  const port = address === null || typeof address === 'string' ? 0 : address.port
  expect(await forwardPort({ port, socketPath: '/nonexistent', name: 'proxy' }, log)).toBeUndefined()
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: 'proxy_unavailable', code: 'EADDRINUSE' })
  holder.close()
})
