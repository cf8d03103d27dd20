import { isSandboxId, encodeId } from '@sandwire/internal-api'
import { isEqualInConstantTime } from '../bytes.ts'

/** Letters of the random part: 128 bits. */
const RANDOM_LETTERS = 26
/** Letters of the HMAC at the end: 30 bits. */
const MARK_LETTERS = 6
const ID_BYTES = 16

/** Mints sandbox and session ids, and tells ids that were minted here from invented ones without asking anybody. */
export interface IdMint {
  mintSandbox(): Promise<string>
  mintSession(sandbox: string): string
  /** Whether this id was minted with our key. An invented one must touch no object. */
  isMinted(id: string): Promise<boolean>
}

export async function openIdMint(
  keyBytes: Uint8Array<ArrayBuffer>,
  random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array,
): Promise<IdMint> {
  const key = await crypto.subtle.importKey('raw', keyBytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])
  const letters = (): string => encodeId(random(new Uint8Array(ID_BYTES)))
  const markOf = async (text: string): Promise<string> => {
    const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`sandbox:${text}`))
    return encodeId(new Uint8Array(mac, 0, 4)).slice(0, MARK_LETTERS)
  }
  return {
    async mintSandbox() {
      const text = letters()
      return text + (await markOf(text))
    },
    mintSession: (sandbox) => `${sandbox}.${letters()}`,
    async isMinted(id) {
      if (!isSandboxId(id)) return false
      return isEqualInConstantTime(await markOf(id.slice(0, RANDOM_LETTERS)), id.slice(RANDOM_LETTERS))
    },
  }
}
