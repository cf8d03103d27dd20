import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Why there can be none here. */
export const FAR_SERVER_OBSTACLE = Bun.which('openssl') === null ? ' (skipped: no openssl)' : ''

const NAME = 'far.example'

/** A server with a name and a certificate of the world outside, which a program reaches through a proxy. */
export interface FarServer extends AsyncDisposable {
  readonly url: string
  /** With it, a program finds the server and believes its certificate. */
  readonly env: Readonly<Record<string, string>>
}

/** Serves HTTPS as somebody far away. */
export async function openFarServer(
  answer: (request: Request) => Response | Promise<Response>,
): Promise<FarServer> {
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
    fetch: answer,
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
