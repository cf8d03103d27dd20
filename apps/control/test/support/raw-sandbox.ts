import { socketName } from './socket-name.ts'
import type { Birthplace } from './stand-in-host.ts'

const VERSION = JSON.stringify({ name: 'sandboxd', version: '0', protocol: 1, compatible_from: 1 })

/** A sandbox that answers attaches and requests about files with whatever bytes a test gives it. */
export class RawSandbox implements Birthplace, AsyncDisposable {
  /** Sent in answer to an attach. */
  answer = ''
  /** Sent in answer to a request about files, after which its connection ends. */
  filesAnswer = ''
  filesAsked = 0
  /** Attaches that were answered. */
  attaches = 0
  #server: Bun.UnixSocketListener<undefined> | undefined

  async start(): Promise<string> {
    const server = Bun.listen({
      unix: socketName(),
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
            this.filesAsked += 1
            socket.write(this.filesAnswer)
            socket.end()
          } else socket.write(bytes)
        },
      },
    })
    this.#server = server
    return server.unix
  }

  async stop(): Promise<void> {
    this.#server?.stop(true)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
