import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { openForward } from '@sandwire/socket-forward'
import { mintHex } from './support/wire-client.ts'

const MAIN = join(import.meta.dir, '../../apps/sandboxd/src/main.ts')
const isRoot = process.getuid?.() === 0

/** A sandboxd in its own network namespace, reachable only through its Unix socket. */
let folder: string
let socket: string
let child: Bun.Subprocess
let proxy: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  if (!isRoot) return
  folder = mkdtempSync(join(tmpdir(), 'sandwire-egress-'))
  socket = join(folder, 'sandboxd.sock')
  proxy = Bun.serve({
    unix: join(folder, 'proxy.sock'),
    fetch: ({ url }) => new Response(`proxied ${new URL(url).pathname}`),
  })
  writeFileSync(join(folder, 'env.json'), JSON.stringify({ GREETING: 'hello', NO_PROXY: 'internal' }))
  const flags = ['--insecure', '--listen', `unix:${socket}`, '--workspace', tmpdir()]
  const egress = ['--proxy-socket', join(folder, 'proxy.sock'), '--env-file', join(folder, 'env.json')]
  const script = 'ip link set lo up && exec "$0" "$@"'
  child = Bun.spawn(
    [
      'unshare',
      '--net',
      'sh',
      '-c',
      script,
      process.execPath,
      MAIN,
      ...flags,
      ...egress,
      '--run-as',
      '65534:65534',
    ],
    { stdout: 'ignore', stderr: 'ignore' },
  )
  await eventually(() => existsSync(socket), { what: 'the socket' })
})
afterAll(async () => {
  if (!isRoot) return
  child.kill('SIGTERM')
  await child.exited
  await proxy.stop(true)
  rmSync(folder, { recursive: true, force: true })
})

async function run(script: string): Promise<string> {
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`http://localhost${path}`, { ...init, unix: socket })
  const body = JSON.stringify({ createId: mintHex(), cmd: 'bash', args: ['-c', `{ ${script}\n} 2>&1`] })
  const { id } = (await (await call('/sessions', { method: 'POST', body })).json()) as { id: string }
  return eventually(
    async () => {
      const response = await call(`/sessions/${id}/output`)
      return response.headers.get('sandwire-state') === 'exited' ? response.text() : undefined
    },
    { what: 'the output' },
  )
}

describe.if(isRoot)('a sandbox with a proxy', () => {
  test('passes its processes the address of the proxy and the variables of the operator', async () => {
    const text = await run('env')
    const address = 'http://127.0.0.1:3128'
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'])
      expect(text).toContain(`\n${name}=${address}\n`)
    expect(text).not.toContain('ALL_PROXY')
    expect(text).toContain('\nGREETING=hello\n')
    expect(text).toContain('\nNO_PROXY=internal\n')
    expect(existsSync(join(folder, 'env.json'))).toBe(false)
  })

  test('reaches only the proxy through that address', async () => {
    const request = String.raw`GET http://example.test/page HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n\r\n`
    const text = await run(`exec 3<>/dev/tcp/127.0.0.1/3128; printf '${request}' >&3; cat <&3`)
    expect(text).toContain('proxied /page')
    expect(await run(': >/dev/tcp/1.1.1.1/80')).toContain('unreachable')
  })

  test('(threat T11) cannot open the sockets of sandboxd or the proxy', async () => {
    expect(await run(`ls -l ${folder}/; cat ${folder}/sandboxd.sock`)).toContain('ermission denied')
  })
})

test('the forward to the proxy applies backpressure', async () => {
  const own = mkdtempSync(join(tmpdir(), 'sandwire-slow-'))
  const socketPath = join(own, 'proxy.sock')
  const block = Buffer.alloc(65_536, 7)
  let offered = 0
  const upstream = createServer((peer) => {
    peer.on('error', () => {})
    const write = (): void => {
      do offered += block.byteLength
      while (peer.write(block))
      peer.once('drain', write)
    }
    write()
  })
  await new Promise<void>((resolve) => upstream.listen(socketPath, resolve))
  const forward = await openForward({
    listen: { host: '127.0.0.1', port: 0 },
    target: () => socketPath,
    maxConnections: 8,
  })
  const address = forward.address()
  if (typeof address !== 'object' || address === null) throw new Error('no forward')
  const client = connect(address.port, '127.0.0.1')
  client.pause()
  // Once the transfer stalls, the bytes in flight are those that kernel buffers and stream limits hold.
  for (let before = -1; before !== offered; await Bun.sleep(300)) before = offered
  expect(offered).toBeLessThan(32 * 1024 * 1024)
  const stuckAt = offered
  client.resume()
  await eventually(() => offered > stuckAt + 64 * 1024 * 1024, { what: 'the flow' })
  client.destroy()
  forward?.close()
  upstream.close()
  rmSync(own, { recursive: true })
})
