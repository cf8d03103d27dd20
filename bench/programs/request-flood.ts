// Sends one request over and over on many connections, each as soon as the response to the last one has arrived:
// bun request-flood.ts PORT CONNECTIONS PATH [HEADER…]. Without a path it sends nothing and only holds the connections.

import { connect, type Socket } from 'node:net'

const [port = '', connections = '', path = '', ...headers] = process.argv.slice(2)
const request = Buffer.from(`GET ${path} HTTP/1.1\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`)

const HEAD_END = Buffer.from('\r\n\r\n')
/** Pause before a closed connection is opened again. */
const REOPEN_MS = 20

/** Length of the first response in the buffer; undefined while it is incomplete. */
function findEnd(buffer: Buffer): number | undefined {
  const headEnd = buffer.indexOf(HEAD_END)
  if (headEnd < 0) return undefined
  const head = buffer.toString('latin1', 0, headEnd).toLowerCase()
  const bodyStart = headEnd + HEAD_END.length
  const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1]
  if (length !== undefined)
    return buffer.length < bodyStart + Number(length) ? undefined : bodyStart + Number(length)
  const last = buffer.indexOf('0\r\n\r\n', bodyStart)
  return head.includes('transfer-encoding: chunked') ? (last < 0 ? undefined : last + 5) : bodyStart
}

function open(): void {
  const socket: Socket = connect(Number(port), '127.0.0.1')
  let buffer: Buffer = Buffer.alloc(0)
  if (path !== '') socket.on('connect', () => socket.write(request))
  socket.on('data', (bytes: Buffer) => {
    buffer = buffer.length === 0 ? bytes : Buffer.concat([buffer, bytes])
    const end = findEnd(buffer)
    if (end === undefined) return
    buffer = buffer.subarray(end)
    socket.write(request)
  })
  // Followed by `close`.
  socket.on('error', () => undefined)
  socket.on('close', () => setTimeout(open, REOPEN_MS))
}

for (let index = 0; index < Number(connections); index += 1) open()
