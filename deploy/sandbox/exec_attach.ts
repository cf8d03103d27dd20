// Starts the shell profile of a sprite over a WebSocket of the exec API, disconnects, attaches to the same process and types to it.
// Called by smoke_check.sh, with the token in its environment.

import { WebSocket } from 'ws'
import {
  decodeExecFrame,
  encodeInput,
  type ExecFrame,
  formatExecQuery,
} from '../../apps/control/src/providers/sprites/exec-frames.ts'

const TIMEOUT_MS = 30_000
/** How long the process may run if this check fails. */
const KEEP_SECONDS = 60

const [base = '', sprite = '', shell = '', dir = ''] = process.argv.slice(2)
const token = process.env['SPRITES_API_TOKEN'] ?? ''

/** Opens a WebSocket and calls `receive` with each frame until it returns true. */
async function talk(
  target: string,
  receive: (frame: ExecFrame, socket: WebSocket) => boolean,
): Promise<void> {
  const url = `${base.replace(/^http/, 'ws')}/v1/sprites/${encodeURIComponent(sprite)}${target}`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
  socket.binaryType = 'arraybuffer'
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.on('message', (data: Buffer | ArrayBuffer, isBinary) => {
    const bytes = new Uint8Array(data)
    const message = isBinary
      ? ({ kind: 'binary', bytes } as const)
      : ({ kind: 'text', text: new TextDecoder().decode(bytes) } as const)
    if (receive(decodeExecFrame(message, false), socket)) resolve()
  })
  socket.on('error', () => reject(new Error('the API refused the connection')))
  socket.on('close', () => reject(new Error('the API closed the connection')))
  const timer = setTimeout(() => reject(new Error('no response in time')), TIMEOUT_MS)
  try {
    await promise
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

async function check(): Promise<number> {
  let id = ''
  const query = formatExecQuery({
    argv: [shell, '-c', 'read -r code && exit "$code"'],
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/home/sprite' },
    dir,
    isTty: false,
    cols: 80,
    rows: 24,
    keepSeconds: KEEP_SECONDS,
  })
  await talk(`/exec?${query}`, (frame) => {
    if (frame.kind === 'info') ({ id } = frame)
    return frame.kind === 'info'
  })
  let exit = -1
  await talk(`/exec/${id}?stdin=true`, (frame, socket) => {
    if (frame.kind === 'info') socket.send(encodeInput(new TextEncoder().encode('42\n'), false))
    if (frame.kind === 'exit') exit = frame.code
    return frame.kind === 'exit'
  })
  return exit
}

try {
  const exit = await check()
  if (exit !== 42) throw new Error(`the process ended with ${exit}`)
  process.stdout.write('attached\n')
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : 'unknown error'}\n`)
  process.exit(1)
}
