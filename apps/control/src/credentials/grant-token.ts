import { encodeId } from '@sandwire/internal-api'
import { isEqualInConstantTime, mintSecret, sha256Hex } from '../bytes.ts'

/** `sgw_RUN.HMAC.SECRET`; the prefix lets secret scanners find it. */
const TOKEN = /^sgw_([A-Za-z0-9_-]{1,64})\.([a-z0-9]{1,32})\.([A-Za-z0-9_-]{43})$/
const HMAC_BYTES = 10

/** A token as a request presents it. */
export interface ParsedToken {
  readonly run: string
  /** SHA-256 of the whole token, as stored. */
  readonly hash: string
}

/** Creates and parses gateway tokens. The HMAC shows that the run's id was issued here, so that other ids reach no object. */
export interface GatewayTokens {
  mint(run: string): Promise<{ readonly token: string; readonly hash: string }>
  /** Undefined when the token is malformed or was not issued here. */
  parse(token: string): Promise<ParsedToken | undefined>
}

export async function openGatewayTokens(keyBytes: Uint8Array<ArrayBuffer>): Promise<GatewayTokens> {
  const key = await crypto.subtle.importKey('raw', keyBytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])
  const hmacOf = async (run: string): Promise<string> => {
    const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`gateway:${run}`))
    return encodeId(new Uint8Array(mac, 0, HMAC_BYTES))
  }
  return {
    async mint(run) {
      const token = `sgw_${run}.${await hmacOf(run)}.${mintSecret()}`
      return { token, hash: await sha256Hex(token) }
    },
    async parse(token) {
      const [, run, hmac] = TOKEN.exec(token) ?? []
      if (run === undefined || hmac === undefined) return undefined
      if (!isEqualInConstantTime(await hmacOf(run), hmac)) return undefined
      return { run, hash: await sha256Hex(token) }
    },
  }
}
