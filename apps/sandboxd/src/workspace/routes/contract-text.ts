import { closeSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { readBytes } from '../bytes/read-bytes.ts'
import type { Files, OpenFile } from '../files.ts'
import type { GiveBack } from '../text-room.ts'
import { type Holding, respondParts } from './held-answer.ts'

/** Largest file that is given, and taken, as a text in JSON. Larger ones have the routes for bytes. */
export const MAX_TEXT_BYTES = 8 * 1024 * 1024
/** Characters of a text may stand escaped in JSON; more than half of them hardly do. */
export const MAX_BODY_BYTES = MAX_TEXT_BYTES * 2
/** Texts that take no room worth counting. */
const SMALL_BYTES = 64 * 1024
/** A text is there as bytes, as characters, and the same of the JSON around it, for a while all at once. */
const FORMS = 4
/** Characters of a text that are written at a time. */
const PART_CHARS = 64 * 1024

const NOTHING: GiveBack = () => undefined

/** A text, and the room that it takes until it is sent. */
export interface HeldText {
  readonly content: string
  readonly etag: string
  readonly giveBack: GiveBack
}

/** Takes the room that so many bytes of text need. */
export async function holdText(sizeBytes: number, { texts, signal }: Holding): Promise<GiveBack> {
  return sizeBytes <= SMALL_BYTES ? NOTHING : texts.take(sizeBytes * FORMS, signal)
}

/** The text of a file; undefined when it is none. */
export async function readText(files: Files, path: string, holding: Holding): Promise<HeldText | undefined> {
  const file = await files.open(path).catch(throughNoFolder)
  const giveBack = await holdOpen(file, holding)
  try {
    const content = await decode(file)
    if (content !== undefined) return { content, etag: file.stat.etag, giveBack }
  } catch (error) {
    giveBack()
    throw error
  }
  giveBack()
  return undefined
}

/** For the contract nothing is behind a file. */
function throughNoFolder(caught: unknown): never {
  const error = SandwireError.from(caught)
  if (error.code === 'not_a_folder') throw new SandwireError('file_not_found', error.message)
  throw error
}

async function holdOpen({ fd, stat }: OpenFile, holding: Holding): Promise<GiveBack> {
  try {
    if (stat.sizeBytes > MAX_TEXT_BYTES)
      throw new SandwireError('file_too_large', 'Cannot show the file: too large')
    return await holdText(stat.sizeBytes, holding)
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
    // Not UTF-8, so not a text that JSON can hold.
    return undefined
  }
}

/**
 * A text in JSON, written as it is sent: there it may be six times as long. It takes its room until the last of it is handed over,
 * or nobody is there any more to hand it to.
 */
export function respondText(
  { content, etag, giveBack }: HeldText,
  path: string,
  signal: AbortSignal,
): Response {
  let sizeBytes = 0
  for (const part of writeJson(content, path)) sizeBytes += part.byteLength
  const headers = { etag: `"${etag}"` }
  return respondParts(writeJson(content, path), { sizeBytes, headers }, { giveBack, signal })
}

/** The parts of `{"content", "path"}`. */
function* writeJson(content: string, path: string): Generator<Uint8Array, void, void> {
  yield Buffer.from('{"content":"')
  for (let at = 0; at < content.length;) {
    const end = at + PART_CHARS
    // The two halves of a character stay together: alone, each would be written another way.
    const isSplit = /^[\ud800-\udbff]$/.test(content.charAt(end - 1))
    const part = content.slice(at, isSplit ? end + 1 : end)
    yield Buffer.from(JSON.stringify(part).slice(1, -1))
    at += part.length
  }
  yield Buffer.from(`","path":${JSON.stringify(path)}}`)
}
