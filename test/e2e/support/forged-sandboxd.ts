// A forged sandboxd: reports a valid version, then sends the response that `?cmd=` names. Clients must never see its text.

import { createServer, type Socket } from 'node:net'
import { COMPATIBLE_FROM, PROTOCOL_VERSION } from '@sandwire/protocol'

/** No response to a client may contain this text. */
export const FORGED_TEXT = 'RAW-SECRET'

const BODY = `${FORGED_TEXT} at /secret/path.ts:3`
const withBody = (status: string): string =>
  `HTTP/1.1 ${status}\r\nX-Raw: ${FORGED_TEXT}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`
const error = JSON.stringify({ error: { code: 'conflict', message: BODY, request_id: BODY } })

/** Responses to an upgrade, by name. */
export const FORGED_RESPONSES = {
  ok: withBody('200 OK'),
  moved: `HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/${FORGED_TEXT}\r\nContent-Length: 0\r\n\r\n`,
  bad: withBody('400 Bad'),
  upgrade: withBody('426 No'),
  broken: withBody('500 No'),
  garbage: `${BODY}\r\n\r\n`,
  half: `HTTP/1.1 101 Switching Protocols\r\nX-Raw: ${FORGED_TEXT}`,
  bare: `HTTP/1.1 101 Switching Protocols\r\nX-Raw: ${FORGED_TEXT}\r\n\r\n`,
  mismatch: `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\nX-Raw: ${FORGED_TEXT}\r\n\r\n`,
  ours: `HTTP/1.1 409 No\r\nContent-Type: application/json\r\nContent-Length: ${error.length}\r\n\r\n${error}`,
  nothing: '',
} as const

export type ForgedResponse = keyof typeof FORGED_RESPONSES

function isForgedResponse(name: string): name is ForgedResponse {
  return Object.hasOwn(FORGED_RESPONSES, name)
}

function version(): string {
  const body = JSON.stringify({
    name: 'sandboxd',
    version: '0',
    protocol: PROTOCOL_VERSION,
    compatible_from: COMPATIBLE_FROM,
  })
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

function serve(socket: Socket): void {
  socket.on('error', () => undefined)
  let answered = ''
  socket.on('data', (bytes: Buffer) => {
    const text = bytes.toString('latin1')
    // Echoes bytes after a response that are not a request.
    if (answered !== '' && !text.startsWith('GET /')) return void socket.write(`${FORGED_TEXT} ${text}`)
    if (text.startsWith('GET /__meta/version')) return void socket.write(version())
    const name = /[?&]cmd=([a-z]+)/.exec(text)?.[1] ?? ''
    answered = isForgedResponse(name) ? name : 'broken'
    socket.write(FORGED_RESPONSES[isForgedResponse(name) ? name : 'broken'])
    if (answered === 'half' || answered === 'nothing') setTimeout(() => socket.destroy(), 200)
  })
}

if (import.meta.main) {
  const listen = process.argv[process.argv.indexOf('--listen') + 1] ?? ''
  createServer(serve).listen(listen.replace('unix:', ''), () => process.stdout.write('{"type":"ready"}\n'))
}
