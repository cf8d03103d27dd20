import { createServer, type Socket } from 'node:net'
import { couple, dial, readHead } from './tunnel.ts'

/** Settings that workerd changes while the container runs; omitted ones stay unchanged. */
export interface EgressSettings {
  readonly port?: number
  readonly dns?: { readonly allowHostnames?: readonly string[] }
  readonly internet?: { readonly enabled?: boolean }
}

export interface IngressOptions {
  readonly port: number
  /** The only accepted client address, so that other containers are refused. */
  readonly gateway: string
  readonly configure: (settings: EgressSettings) => void
  readonly authority: () => string
}

/** Gives workerd access to the namespace: to ports by CONNECT, to settings and CA certificate by HTTP. */
export function serveIngress(options: IngressOptions): void {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => client.destroy())
    if (client.remoteAddress?.replace('::ffff:', '') === options.gateway)
      void answer(client, options).catch(() => client.destroy())
    else client.destroy()
  })
  server.listen(options.port, '0.0.0.0')
}

async function answer(client: Socket, options: IngressOptions): Promise<void> {
  const { lines, rest } = await readHead(client)
  const [method, target = ''] = (lines[0] ?? '').split(' ')
  switch (`${method} ${method === 'CONNECT' ? '' : target}`) {
    case 'CONNECT ':
      return enter(client, target, rest)
    case 'PUT /egress': {
      const length = Number(/^content-length:\s*(\d+)/im.exec(lines.join('\n'))?.[1] ?? 0)
      options.configure(JSON.parse(await readBody(client, rest, length)) as EgressSettings)
      return respond(client, '200 OK', '')
    }
    case 'GET /ca':
      return respond(client, '200 OK', options.authority())
    default:
      return respond(client, '404 Not Found', '')
  }
}

async function enter(client: Socket, target: string, rest: Buffer): Promise<void> {
  const port = Number(/:(\d{1,5})$/.exec(target)?.[1])
  let inside: Socket
  try {
    inside = await dial('127.0.0.1', port)
  } catch {
    // workerd interprets this as a port on which nothing listens yet.
    return respond(client, '400 Bad Request', '')
  }
  client.write('HTTP/1.1 200 OK\r\n\r\n')
  if (rest.length > 0) inside.write(rest)
  couple(client, inside)
}

function respond(client: Socket, status: string, body: string): void {
  client.end(
    `HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

function readBody(client: Socket, rest: Buffer, length: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let bytes = rest
  const look = (): void => {
    if (bytes.length >= length) resolve(bytes.toString())
  }
  client.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    look()
  })
  client.once('close', () => reject(new Error('no body')))
  look()
  client.resume()
  return promise
}
