import { isSandboxId, encodeId } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { isEqualInConstantTime } from '../bytes.ts'

/** Characters of the random part: 128 bits. */
const RANDOM_CHARS = 26
/** Characters of the HMAC at the end: 30 bits. */
const HMAC_CHARS = 6
const ID_BYTES = 16
const RUN_ID_BYTES = 15

/** Mints ids of sandboxes, sessions, runs and conversations. An HMAC in the id shows that it was minted here, without a lookup. */
export interface IdMint {
  mintSandbox(): Promise<string>
  mintSession(sandbox: string): string
  mintRun(sandbox: string): string
  mintConversation(sandbox: string): string
  /** True when the id was minted with our key. Other ids must not reach a Durable Object. */
  isMinted(id: string): Promise<boolean>
}

export async function openIdMint(
  keyBytes: Uint8Array<ArrayBuffer>,
  random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array,
): Promise<IdMint> {
  const key = await crypto.subtle.importKey('raw', keyBytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])
  const randomPart = (): string => encodeId(random(new Uint8Array(ID_BYTES)))
  const hmacOf = async (text: string): Promise<string> => {
    const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`sandbox:${text}`))
    return encodeId(new Uint8Array(mac, 0, 4)).slice(0, HMAC_CHARS)
  }
  return {
    async mintSandbox() {
      const text = randomPart()
      return text + (await hmacOf(text))
    },
    mintSession: (sandbox) => `${sandbox}.${randomPart()}`,
    mintRun: (sandbox) => `${sandbox}_${encodeId(random(new Uint8Array(RUN_ID_BYTES)))}`,
    mintConversation: (sandbox) => `${sandbox}__${encodeId(random(new Uint8Array(RUN_ID_BYTES)))}`,
    async isMinted(id) {
      if (!isSandboxId(id)) return false
      return isEqualInConstantTime(await hmacOf(id.slice(0, RANDOM_CHARS)), id.slice(RANDOM_CHARS))
    },
  }
}

/** A DNS label, so that a name can become part of a host name. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** A sandbox as a request names it. */
export type SandboxRef =
  | { readonly by: 'id'; readonly id: string }
  | { readonly by: 'name'; readonly name: string }

/** True for a valid sandbox name; an id is never one. */
export function isSandboxName(text: string): boolean {
  return NAME.test(text) && !isSandboxId(text)
}

/** Parses an id or a name; throws `bad_request` for anything else. */
export function parseSandboxRef(text: string): SandboxRef {
  if (isSandboxId(text)) return { by: 'id', id: text }
  if (isSandboxName(text)) return { by: 'name', name: text }
  throw new SandwireError('bad_request', 'Cannot use the sandbox: neither an id nor a name')
}
