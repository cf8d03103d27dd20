// Runs in the network namespace of a sprite: connects a unix socket outside to TCP ports inside. The first line names the port.

import { createConnection, createServer, type Socket } from 'node:net'

const [socketPath = ''] = process.argv.slice(2)

function connect(outside: Socket, port: number, rest: Buffer): void {
  const inside = createConnection({ host: '127.0.0.1', port, allowHalfOpen: true })
  inside.on('connect', () => {
    outside.write('ok\n')
    inside.write(rest)
    outside.pipe(inside)
    inside.pipe(outside)
  })
  inside.on('error', () => outside.destroy())
  outside.on('error', () => inside.destroy())
  outside.on('close', () => inside.destroy())
}

const server = createServer({ allowHalfOpen: true }, (outside) => {
  let received = Buffer.alloc(0)
  const onData = (bytes: Buffer): void => {
    received = Buffer.concat([received, bytes])
    const end = received.indexOf('\n')
    if (end < 0) return
    outside.off('data', onData)
    outside.pause()
    connect(outside, Number(received.subarray(0, end).toString()), received.subarray(end + 1))
  }
  outside.on('data', onData)
  outside.on('error', () => undefined)
})
server.listen(socketPath, () => process.stdout.write('ready\n'))
