import { connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { SandwireError } from '@sandwire/protocol'

/** Control that does not answer in this time is busy, not misconfigured. */
const ANSWER_MS = 10_000
/** Its log and its answer come by different ways. */
const LOG_MS = 1_000
const FAULT = /^HTTP\/1\.1 5\d\d /

/** First line of the answer to a request for its health; undefined when there is none. Asked by hand: no proxy of the environment is. */
async function askHealth(address: string, isSecure: boolean): Promise<string | undefined> {
  const { hostname, port } = new URL(`http://${address}`)
  const target = { host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port) }
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  // It asks itself over loopback, and believes nothing of the answer but that there is one.
  const socket = isSecure ? connectSecurely({ ...target, rejectUnauthorized: false }) : connect(target)
  const timer = setTimeout(() => resolve(undefined), ANSWER_MS)
  let heard = ''
  socket.on('data', (bytes: Buffer) => {
    heard += bytes.toString('latin1')
    if (heard.includes('\r\n')) resolve(heard.slice(0, heard.indexOf('\r\n')))
  })
  for (const event of ['error', 'close'] as const) socket.on(event, () => resolve(undefined))
  socket.write(`GET /healthz HTTP/1.1\r\nHost: ${address}\r\nConnection: close\r\n\r\n`)
  const line = await promise
  clearTimeout(timer)
  socket.destroy()
  return line
}

/** Why control takes none of its settings, which it says in its log alone: it serves nothing then. */
export class SettingsRefusal {
  readonly #cause = Promise.withResolvers<string>()

  /** Hears every finished line of control's log. */
  hear(line: string): void {
    if (!line.includes('"settings_refused"')) return
    const { event, cause } = JSON.parse(line) as Readonly<Record<string, unknown>>
    if (event === 'settings_refused') this.#cause.resolve(String(cause))
  }

  /** Throws when control answers nothing because of its settings: it would look as if it had started. */
  async check(address: string, isSecure: boolean): Promise<void> {
    const line = await askHealth(address, isSecure)
    if (line === undefined || !FAULT.test(line)) return
    const late = new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), LOG_MS).unref()
    })
    const cause = await Promise.race([this.#cause.promise, late])
    // Anything else that is wrong passes, or is for the log: who can use what works should.
    if (cause === undefined) return
    throw new SandwireError('bad_request', `Cannot run control: ${cause.replace(/^Error: /, '')}`)
  }
}
