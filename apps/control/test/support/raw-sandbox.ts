import type { Birthplace } from './stand-in-host.ts'

const VERSION = JSON.stringify({ name: 'sandboxd', version: '0', protocol: 1, compatible_from: 1 })

/** A sandbox that answers attaches with whatever bytes a test gives it, and echoes everything after. */
export class RawSandbox implements Birthplace, AsyncDisposable {
  /** Sent in answer to an attach. */
  answer = ''
  #server: Bun.TCPSocketListener | undefined

  async start(): Promise<string> {
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data: (socket, bytes) => {
          const text = bytes.toString()
          if (text.startsWith('GET /__meta/version'))
            socket.write(
              `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${VERSION.length}\r\n\r\n${VERSION}`,
            )
          else socket.write(text.startsWith('GET /attach') ? this.answer : bytes)
        },
      },
    })
    this.#server = server
    return `http://127.0.0.1:${server.port}`
  }

  async stop(): Promise<void> {
    this.#server?.stop(true)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
