// Starts the shell profile of a sprite over a WebSocket of the exec API, disconnects, attaches to the same process and types to it.
// Called by smoke_check.sh, with the token in its environment.

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
async function talk(target: string, receive: (frame: ExecFrame, socket: WebSocket) => boolean): Promise<void> {
  const url = `${base.replace(/^http/, 'ws')}/v1/sprites/${encodeURIComponent(sprite)}${target}`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
  socket.binaryType = 'arraybuffer'
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    const message =
      typeof data === 'string'
        ? ({ kind: 'text', text: data } as const)
        : ({ kind: 'binary', bytes: new Uint8Array(data) } as const)
    if (receive(decodeExecFrame(message, false), socket)) resolve()
  })
  socket.addEventListener('close', () => reject(new Error('the API closed the connection')))
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
