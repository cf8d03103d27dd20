import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Why it cannot run here; empty if it can. */
export const REMOTE_SERVER_PROBLEM = Bun.which('openssl') === null ? ' (skipped: no openssl)' : ''

const NAME = 'remote.example'

/** A server with a public name and certificate, reached through a proxy. */
export interface RemoteServer extends AsyncDisposable {
  readonly url: string
  /** Makes a program use the proxy and trust the certificate. */
  readonly env: Readonly<Record<string, string>>
}

/** Serves HTTPS under a public name. */
export async function openRemoteServer(
  respond: (request: Request) => Response | Promise<Response>,
): Promise<RemoteServer> {
  const folder = mkdtempSync(join(tmpdir(), 'far-server-'))
  const key = join(folder, 'key.pem')
  const cert = join(folder, 'cert.pem')
  const subject = ['-subj', `/CN=${NAME}`, '-addext', `subjectAltName=DNS:${NAME}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-days', '2']
  const argv = ['openssl', 'req', '-x509', ...curve, '-keyout', key, '-out', cert, ...subject]
  const made = Bun.spawnSync(argv, { stderr: 'pipe' })
  if (!made.success) throw new Error(made.stderr.toString())
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') },
    fetch: respond,
  })
  const proxy = createServer()
  proxy.on('connect', (request, client) => {
    if (request.url !== `${NAME}:443`) return void client.end('HTTP/1.1 502 No such host\r\n\r\n')
    const upstream = connect(server.port ?? 0, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(client).pipe(upstream)
    })
    upstream.on('error', () => client.destroy())
    client.on('error', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as AddressInfo
  return {
    url: `https://${NAME}`,
    env: { HTTPS_PROXY: `http://127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: cert },
    [Symbol.asyncDispose]: async () => {
      proxy.closeAllConnections()
      proxy.close()
      await server.stop(true)
      rmSync(folder, { recursive: true })
    },
  }
}
