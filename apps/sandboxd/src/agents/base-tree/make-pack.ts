import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { readChunks } from '../file-chunks.ts'
import type { TreeContext } from './base-tree.ts'
import { git, type PrivateGit } from './private-git.ts'

/** Control keeps packs in the database of the run, and holds one in memory to publish it. */
const MAX_PACK_BYTES = 16 * 1024 * 1024

/** Writes a pack of the objects that one tree has and another does not. Null: there are none, or they are too large. */
export async function makePack(
  plan: PrivateGit,
  { asUser }: TreeContext,
  {
    scratch,
    packFile,
    from,
    to,
  }: { readonly scratch: string; readonly packFile: string; readonly from: string; readonly to: string },
): Promise<number | null> {
  if (from === to) return null
  const prefix = path.join(scratch, 'publish')
  const hash = (
    await git(plan, ['pack-objects', '-q', '--revs', '--delta-base-offset', prefix], {
      stdin: Buffer.from(`${to}\n^${from}\n`),
    })
  )
    .toString()
    .trim()
  const made = `${prefix}-${hash}.pack`
  const { size } = asUser(() => statSync(made))
  if (size > MAX_PACK_BYTES) return null
  const source = asUser(() => openSync(made, 'r'))
  const file = openSync(packFile, 'w', 0o600)
  try {
    for await (const piece of readChunks(source)) writeSync(file, piece)
    return size
  } finally {
    closeSync(file)
    closeSync(source)
  }
}
