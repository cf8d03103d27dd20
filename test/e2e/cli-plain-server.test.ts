import { afterAll, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { runCli } from './cli-runner.ts'

const MAIN = resolve(import.meta.dir, '../../apps/cli/src/main.ts')
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

test.each([
  ['silent', 'list'],
  ['silent', 'attach'],
  ['silent', 'cp'],
  ['loud', 'list'],
  ['loud', 'attach'],
] as const)(
  'https to a server that speaks http (%s) is told soon, with the address that works: %s',
  async (kind, doing) => {
    const url = `https://127.0.0.1:${servers[kind].port}`
    const words = {
      list: ['list', '--url', url],
      cp: ['cp', 'box:x', '/tmp/sandwire-never', '--url', url],
      attach: [`${url}/attach`, '--', 'id'],
    }
    const startMs = performance.now()
    const { stderr, code } = await runCli([process.execPath, MAIN, ...words[doing]], { env: ENV })
    const path = doing === 'attach' ? '/attach' : ''
    expect(stderr).toBe(
      `sbx-stdio: Cannot talk to ${url}: it speaks http there, not https\nhint: try ${url.replace('https', 'http')}${path}\n`,
    )
    expect(code).toBe(255)
    expect(performance.now() - startMs).toBeLessThan(SOON_MS)
  },
  30_000,
)
