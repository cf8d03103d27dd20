import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { showPath } from '../beneath/show-path.ts'
import { callGit } from './call.ts'
import { expectSuccess, readBytes, readTokens } from './output.ts'
import { type Repository, requireCommit } from './repository.ts'

/** Most bytes of a file that are given in JSON. */
const SHOW_MAX_BYTES = 4 * 1024 * 1024
const SHOW_MS = 20_000

/** A file as a commit has it. */
export interface ShownFile {
  readonly commit: string
  readonly kind: 'file' | 'link'
  readonly sizeBytes: number
  readonly bytes: Buffer
  /** These are not all of its bytes. */
  readonly truncated: boolean
}

interface TreeEntry {
  readonly mode: string
  readonly type: string
  readonly oid: string
  readonly sizeBytes: number
}

/** Reads a file at a commit. Throws `file_not_found`, `is_a_folder` and `special_file`. */
export async function showFile(
  repository: Repository,
  { path, ref }: { readonly path: string; readonly ref: string },
  maxBytes = SHOW_MAX_BYTES,
): Promise<ShownFile> {
  const commit = await requireCommit(repository, ref)
  const entry = await findEntry(repository, commit, path)
  const cannot = `Cannot show ${showPath(path)} at ${showPath(ref)}`
  if (entry?.type === 'tree' || path === '.') throw new SandwireError('is_a_folder', `${cannot}: a folder`)
  if (entry === undefined) throw new SandwireError('file_not_found', `${cannot}: no such file`)
  if (entry.type !== 'blob') throw new SandwireError('special_file', `${cannot}: a submodule`)
  const tool = await callGit(repository, { args: ['cat-file', 'blob', entry.oid], timeMs: SHOW_MS })
  const { bytes, isCut } = await readBytes(tool, maxBytes)
  if (!isCut) await expectSuccess(tool, cannot)
  const kind = entry.mode === '120000' ? 'link' : 'file'
  return { commit, kind, sizeBytes: entry.sizeBytes, bytes, truncated: isCut }
}

async function findEntry(
  repository: Repository,
  commit: string,
  path: string,
): Promise<TreeEntry | undefined> {
  const args = ['ls-tree', '--full-tree', '--long', '-z', commit] as const
  const tool = await callGit(repository, { args, path, timeMs: SHOW_MS })
  for await (const token of readTokens(tool)) {
    const [, mode, type, oid, size, name] =
      /^([0-7]+) (\w+) ([0-9a-f]+) +([0-9]+|-)\t(.*)$/s.exec(pathFromBytes(token)) ?? []
    if (mode === undefined || type === undefined || oid === undefined || name !== path) continue
    return { mode, type, oid, sizeBytes: Number(size) || 0 }
  }
  await expectSuccess(tool, `Cannot show ${showPath(path)}`)
  return undefined
}

/** The text of a file, where it is text: UTF-8 without NUL. */
export function textOf({ bytes, truncated }: Pick<ShownFile, 'bytes' | 'truncated'>): string | undefined {
  try {
    // A character that was cut off with the rest is no fault.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, {
      stream: truncated,
    })
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
