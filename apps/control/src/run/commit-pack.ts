import { concatBytes } from '@sandwire/bytes'

/** A commit to be made. */
export interface Commit {
  readonly tree: string
  readonly parent: string
  /** Title and text. */
  readonly message: string
  readonly atMs: number
}

const AUTHOR = 'Sandwire <agent@sandwire.invalid>'
/** Type of commits in packs. */
const COMMIT_TYPE = 1
const HEADER_BYTES = 12
const HASH_BYTES = 20

/** Adds a commit to a pack that has the objects of its tree; returns the commit's id and the new pack. */
export async function addCommit(
  pack: Uint8Array<ArrayBuffer>,
  commit: Commit,
): Promise<{ readonly id: string; readonly pack: Uint8Array<ArrayBuffer> }> {
  const content = new Uint8Array(new TextEncoder().encode(formatCommit(commit)))
  const object = concatBytes([new TextEncoder().encode(`commit ${content.byteLength}\0`), content])
  const header = new Uint8Array(pack.slice(0, HEADER_BYTES))
  const counter = new DataView(header.buffer, 8)
  counter.setUint32(0, counter.getUint32(0) + 1)
  const body = concatBytes([
    header,
    pack.subarray(HEADER_BYTES, pack.byteLength - HASH_BYTES),
    entryHeader(COMMIT_TYPE, content.byteLength),
    await deflate(content),
  ])
  return { id: (await sha1(object)).toHex(), pack: concatBytes([body, await sha1(body)]) }
}

function formatCommit({ tree, parent, message, atMs }: Commit): string {
  const who = `${AUTHOR} ${Math.floor(atMs / 1000)} +0000`
  return `tree ${tree}\nparent ${parent}\nauthor ${who}\ncommitter ${who}\n\n${message.trimEnd()}\n`
}

/** Type and size of an object: 4 bits of the size, then 7 per byte. */
function entryHeader(type: number, size: number): Uint8Array {
  const bytes = [(type << 4) | (size & 15)]
  for (let rest = size >>> 4; rest > 0; rest >>>= 7) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80
    bytes.push(rest & 0x7f)
  }
  return Uint8Array.from(bytes)
}

async function deflate(content: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([content]).stream().pipeThrough(new CompressionStream('deflate'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

async function sha1(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-1', bytes))
}
