import { closeSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { readBytes } from '../workspace/files/file-bytes.ts'
import type { Files, OpenFile } from '../workspace/files.ts'
import { type MemoryBudget, respondParts } from '../workspace/routes/listing-response.ts'
import type { Release } from '../workspace/semaphore.ts'

/** Largest file that is read or written as a JSON string. The byte routes serve larger ones. */
export const MAX_TEXT_BYTES = 8 * 1024 * 1024
/** JSON escapes lengthen a text; real texts rarely double. */
export const MAX_BODY_BYTES = MAX_TEXT_BYTES * 2
/** Texts up to this size are not counted against the memory budget. */
const UNCOUNTED_BYTES = 64 * 1024
/** A text exists as bytes and as a string, and so does its JSON, for a moment all at once. */
const COPIES = 4
/** Characters that are encoded at a time. */
const PART_CHARS = 64 * 1024

/** A text and its share of the memory budget, which is held until the response is sent. */
interface HeldText {
  readonly content: string
  readonly etag: string
  readonly release: Release
}

/** Reserves memory for a text of this size. */
export async function reserveText(sizeBytes: number, { memory, signal }: MemoryBudget): Promise<Release> {
  return sizeBytes <= UNCOUNTED_BYTES ? () => undefined : memory.acquire(sizeBytes * COPIES, signal)
}

/** Reads a file as text; `undefined` when it is not UTF-8 or contains NUL. */
export async function readText(
  files: Files,
  path: string,
  budget: MemoryBudget,
): Promise<HeldText | undefined> {
  const file = await files.open(path).catch(rejectAsNotFound)
  const release = await reserveOpenFile(file, budget)
  try {
    const content = await decode(file)
    if (content !== undefined) return { content, etag: file.stat.etag, release }
  } catch (error) {
    release()
    throw error
  }
  release()
  return undefined
}

/** The older API answers 404 for a path below a regular file. */
function rejectAsNotFound(caught: unknown): never {
  const error = SandwireError.from(caught)
  if (error.code === 'not_a_folder') throw new SandwireError('file_not_found', error.message)
  throw error
}

async function reserveOpenFile({ fd, stat }: OpenFile, budget: MemoryBudget): Promise<Release> {
  try {
    if (stat.sizeBytes > MAX_TEXT_BYTES)
      throw new SandwireError('file_too_large', 'Cannot show the file: too large')
    return await reserveText(stat.sizeBytes, budget)
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

async function decode(file: OpenFile): Promise<string | undefined> {
  const bytes = Buffer.concat(await Array.fromAsync(readBytes(file, { start: 0, end: file.stat.sizeBytes })))
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // Not UTF-8, so JSON cannot hold it.
    return undefined
  }
}

/** Responds with `{"content", "path"}`, encoded part by part while it is sent: JSON can make a text six times as long. */
export function respondText(
  { content, etag, release }: HeldText,
  path: string,
  signal: AbortSignal,
): Response {
  let sizeBytes = 0
  for (const part of encodeJson(content, path)) sizeBytes += part.byteLength
  const headers = { etag: `"${etag}"` }
  return respondParts(encodeJson(content, path), { sizeBytes, headers }, { release, signal })
}

function* encodeJson(content: string, path: string): Generator<Uint8Array, void, void> {
  yield Buffer.from('{"content":"')
  for (let at = 0; at < content.length;) {
    const end = at + PART_CHARS
    // A surrogate pair stays together: JSON.stringify escapes a lone surrogate.
    const isSplit = /^[\ud800-\udbff]$/.test(content.charAt(end - 1))
    const part = content.slice(at, isSplit ? end + 1 : end)
    yield Buffer.from(JSON.stringify(part).slice(1, -1))
    at += part.length
  }
  yield Buffer.from(`","path":${JSON.stringify(path)}}`)
}
