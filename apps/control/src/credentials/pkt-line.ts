/** The commands of a push fit into this; a larger list is refused. */
const MAX_COMMAND_BYTES = 64 * 1024
const ZERO = /^0+$/
const COMMAND =
  /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (refs\/[^\0\n ]{1,1024})(?:\0[^\n]*)?\n?$/
const SHALLOW = /^shallow [0-9a-f]{40,64}\n?$/

/** One change of a ref that a push asks for. */
export interface RefUpdate {
  readonly ref: string
  readonly isDelete: boolean
}

export type PushCommands =
  | { readonly kind: 'whole'; readonly updates: readonly RefUpdate[] }
  /** More bytes are needed. */
  | { readonly kind: 'partial' }
  /** Not a list of commands that is understood, such as a signed push. */
  | { readonly kind: 'refused' }

/** Reads the commands at the start of a `git-receive-pack` request: packet lines up to a flush packet. */
export function readPushCommands(bytes: Uint8Array): PushCommands {
  const updates: RefUpdate[] = []
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  for (let at = 0; ;) {
    if (at > MAX_COMMAND_BYTES) return { kind: 'refused' }
    if (bytes.byteLength < at + 4) return { kind: 'partial' }
    const head = String.fromCharCode(...bytes.subarray(at, at + 4))
    if (!/^[0-9a-f]{4}$/.test(head)) return { kind: 'refused' }
    const length = Number.parseInt(head, 16)
    if (length === 0) return updates.length === 0 ? { kind: 'refused' } : { kind: 'whole', updates }
    // 1 to 3 are other special packets, 4 an empty one.
    if (length <= 4) return { kind: 'refused' }
    if (bytes.byteLength < at + length) return { kind: 'partial' }
    let line: string
    try {
      line = decoder.decode(bytes.subarray(at + 4, at + length))
    } catch {
      return { kind: 'refused' }
    }
    at += length
    if (SHALLOW.test(line)) continue
    const [, , newId = '', ref] = COMMAND.exec(line) ?? []
    if (ref === undefined) return { kind: 'refused' }
    updates.push({ ref, isDelete: ZERO.test(newId) })
  }
}

const AGENT_BRANCH = /^refs\/heads\/agent\/[A-Za-z0-9_][A-Za-z0-9._/-]*$/

/** True for branches that an agent may push to. */
export function isAgentBranch(ref: string): boolean {
  return AGENT_BRANCH.test(ref) && !ref.includes('..') && !ref.includes('//')
}

/** One packet line. */
export function formatPacket(text: string): string {
  return (new TextEncoder().encode(text).byteLength + 4).toString(16).padStart(4, '0') + text
}

/** The texts of all packet lines, flush packets left out; undefined when these are no packet lines. */
export function readPackets(bytes: Uint8Array): readonly string[] | undefined {
  const decoder = new TextDecoder()
  const lines: string[] = []
  for (let at = 0; at < bytes.byteLength;) {
    const head = String.fromCharCode(...bytes.subarray(at, at + 4))
    if (!/^[0-9a-f]{4}$/.test(head)) return undefined
    const length = Number.parseInt(head, 16)
    if (length > 0 && (length < 4 || at + length > bytes.byteLength)) return undefined
    if (length > 4) lines.push(decoder.decode(bytes.subarray(at + 4, at + length)))
    at += Math.max(length, 4)
  }
  return lines
}
