import { afterAll, expect, test } from 'bun:test'
import { runInProcess } from '../../apps/cli/test/in-process.ts'
import { MAIN, runCli } from './cli-runner.ts'

const ENV = { SBX_TOKEN: `swl_${'t'.repeat(43)}` }
/** First byte of a TLS handshake. */
const HANDSHAKE = 0x16
/** Servers that wait for the end of a request line close such a connection after 15 s. */
const SOON_MS = 10_000

/** Answers as a server without TLS: to a handshake not at all, as workerd does, or with an answer that is none. */
function openPlainServer(answerToHandshake: string | undefined) {
  return Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data: (socket, bytes) => {
        if (bytes[0] !== HANDSHAKE)
          socket.end('HTTP/1.1 200 OK\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{"status":"ok"}')
        else if (answerToHandshake !== undefined) socket.end(answerToHandshake)
      },
    },
  })
}

const servers = {
  silent: openPlainServer(undefined),
  loud: openPlainServer('HTTP/1.1 400 Bad Request\r\n\r\n'),
}

afterAll(() => {
  for (const server of Object.values(servers)) server.stop(true)
})

test('https to a server without TLS fails soon, and names the http address', async () => {
  const cases = [
    ['silent', 'list'],
    ['silent', 'attach'],
    ['silent', 'cp'],
    ['loud', 'list'],
    ['loud', 'attach'],
  ] as const
  await Promise.all(
    cases.map(async ([kind, command]) => {
      const url = `https://127.0.0.1:${servers[kind].port}`
      const startMs = performance.now()
      const { stderr, code } = await run(url, command)
      const path = command === 'attach' ? '/attach' : ''
      expect(stderr).toBe(
        `sbx-stdio: Cannot connect to ${url}: the server uses http, not https\nhint: try ${url.replace('https', 'http')}${path}\n`,
      )
      expect(code).toBe(255)
      expect(performance.now() - startMs).toBeLessThan(SOON_MS)
    }),
  )
})

function run(url: string, command: 'list' | 'cp' | 'attach') {
  switch (command) {
    case 'list':
      return runInProcess(['list', '--url', url], { env: ENV })
    case 'cp':
      return runInProcess(['cp', 'box:x', '/tmp/sandwire-never', '--url', url], { env: ENV })
    case 'attach':
      return runCli([process.execPath, MAIN, `${url}/attach`, '--', 'id'], { env: ENV })
  }
}
