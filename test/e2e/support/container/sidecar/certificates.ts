import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type TLSSocket } from 'node:tls'
import type { AddressInfo } from 'node:net'

const FOLDER = '/ca'
const CONFIG = `${FOLDER}/openssl.cnf`
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc']

function openssl(args: readonly string[]): void {
  const child = Bun.spawnSync(['/usr/bin/openssl', ...args], { stdin: 'ignore', stderr: 'pipe' })
  if (!child.success) throw new Error(`openssl: ${child.stderr.toString()}`)
}

/** Receives a client's decrypted connection. */
type OnPlain = (plain: TLSSocket) => void

interface Terminator {
  readonly port: number
  /** By the remote port of the loopback connection. */
  readonly awaited: Map<number, OnPlain>
}

/** A certificate authority for the sidecar's lifetime, with a TLS server per name. */
export class Certificates {
  readonly #terminators = new Map<string, Promise<Terminator>>()

  constructor() {
    mkdirSync(FOLDER, { recursive: true, mode: 0o700 })
    writeFileSync(CONFIG, '[req]\ndistinguished_name = name\n[name]\n')
    const extensions = [
      'basicConstraints=critical,CA:TRUE',
      'keyUsage=critical,keyCertSign',
      'subjectKeyIdentifier=hash',
    ]
    openssl([
      'req',
      '-x509',
      '-config',
      CONFIG,
      ...KEY,
      '-subj',
      '/CN=Sandwire test authority',
      '-days',
      '2',
      ...extensions.flatMap((each) => ['-addext', each]),
      '-keyout',
      `${FOLDER}/ca.key`,
      '-out',
      `${FOLDER}/ca.crt`,
    ])
  }

  get authority(): string {
    return readFileSync(`${FOLDER}/ca.crt`, 'utf8')
  }

  /** Returns a loopback port that terminates TLS for the name; `awaited` receives the decrypted side. */
  terminate(name: string): Promise<Terminator> {
    const known = this.#terminators.get(name)
    if (known !== undefined) return known
    const made = this.#open(name)
    this.#terminators.set(name, made)
    return made
  }

  #open(name: string): Promise<Terminator> {
    const [key, cert] = [`${FOLDER}/${name}.key`, `${FOLDER}/${name}.crt`]
    openssl([
      'req',
      '-x509',
      '-config',
      CONFIG,
      '-CA',
      `${FOLDER}/ca.crt`,
      '-CAkey',
      `${FOLDER}/ca.key`,
      ...KEY,
      '-subj',
      `/CN=${name.slice(0, 64)}`,
      '-addext',
      `subjectAltName=DNS:${name}`,
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      cert,
    ])
    const awaited = new Map<number, OnPlain>()
    const server = createServer(
      { key: readFileSync(key), cert: readFileSync(cert), allowHalfOpen: true },
      (plain) => {
        const onPlain = awaited.get(plain.remotePort ?? 0)
        awaited.delete(plain.remotePort ?? 0)
        if (onPlain === undefined) plain.destroy()
        else onPlain(plain)
      },
    )
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve({ port: (server.address() as AddressInfo).port, awaited }))
    })
  }
}
