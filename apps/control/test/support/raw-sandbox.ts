import { socketPath } from './socket-path.ts'
import type { SandboxRunner } from './fake-host.ts'

const VERSION = JSON.stringify({ name: 'sandboxd', version: '0', protocol: 1, compatible_from: 1 })

/** Starts sandboxes that answer attaches and workspace requests with bytes chosen by the test. */
export class RawSandbox implements SandboxRunner, AsyncDisposable {
  /** Response to an attach. */
  answer = ''
  /** Response to a workspace request; the connection closes after it. */
  filesResponse = ''
  fileRequests = 0
  /** Number of attaches. */
  attaches = 0
  readonly #servers: Bun.UnixSocketListener<undefined>[] = []

  async start(): Promise<string> {
    const server = Bun.listen({
      unix: socketPath(),
      socket: {
        data: (socket, bytes) => {
          const text = bytes.toString()
          if (text.startsWith('GET /__meta/version'))
            socket.write(
              `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${VERSION.length}\r\n\r\n${VERSION}`,
            )
          else if (text.startsWith('GET /attach')) {
            this.attaches += 1
            socket.write(this.answer)
          } else if (/^[A-Z]+ \/workspace\//.test(text)) {
            this.fileRequests += 1
            socket.write(this.filesResponse)
            socket.end()
          } else socket.write(bytes)
        },
      },
    })
    this.#servers.push(server)
    return server.unix
  }

  /** Stops the sandbox that was started last. */
  async stop(): Promise<void> {
    this.#servers.at(-1)?.stop(true)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) server.stop(true)
  }
}
