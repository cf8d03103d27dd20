import { createHash } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { SandwireError, shape } from '@sandwire/protocol'
import { describeCause, type Log } from '../log.ts'
import type { DataFolder } from './data-folder.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

const manifestShape = shape.record({
  /** Hash of the key of sandbox ids: with another key sandboxes are inaccessible. */
  idKeySha256: shape.text(64),
  /** Paths of databases in the data folder. */
  databases: shape.list(shape.text(1024), 10_000_000),
})
type Manifest = shape.Decoded<typeof manifestShape>

/** The database of a destroyed sandbox is smaller, and is removed; one with tables is larger. */
const EMPTY_DATABASE_BYTES = 4096

const KEEP_MS = 60_000

type ManifestFolder = Pick<DataFolder, 'root' | 'keys' | 'objects' | 'manifest'>

function idKeyOf({ keys }: ManifestFolder): string {
  return path.join(keys, 'id-key')
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function listDatabases({ root, objects }: ManifestFolder): string[] {
  return readdirSync(objects, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sqlite'))
    .map((name) => path.join(objects, name))
    .filter((file) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > EMPTY_DATABASE_BYTES)
    .map((file) => path.relative(root, file))
    .toSorted()
}

/** Records what the data folder must contain from now on. */
export function writeManifest(folder: ManifestFolder): void {
  const manifest: Manifest = {
    idKeySha256: hashOf(readPrivateFile(idKeyOf(folder)) ?? ''),
    databases: listDatabases(folder),
  }
  const text = `${JSON.stringify(manifest)}\n`
  if (readPrivateFile(folder.manifest) !== text) writePrivateFile(folder.manifest, text)
}

/** Keeps the manifest up to date until disposed: databases appear while control runs. On a full disk it stays as it was. */
export function keepManifest(folder: ManifestFolder, log: Log): Disposable {
  const write = (): void => {
    try {
      writeManifest(folder)
    } catch (error) {
      log.warn('manifest_not_written', { cause: describeCause(error) })
    }
  }
  write()
  const timer = setInterval(write, KEEP_MS)
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer)
      write()
    },
  }
}

function readManifest({ manifest }: ManifestFolder): Manifest | undefined {
  const text = readPrivateFile(manifest)
  if (text === undefined) return undefined
  try {
    return manifestShape.decode(JSON.parse(text))
  } catch {
    // Damaged: the next start writes another.
    return undefined
  }
}

function hasContent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/**
 * Throws when something that the manifest lists is missing, empty or replaced, and names it: workerd would start with empty
 * databases instead. With `acceptsMissing`, only the key must be there.
 */
export function requireContent(
  folder: ManifestFolder,
  { acceptsMissing }: { readonly acceptsMissing: boolean },
): void {
  const manifest = readManifest(folder)
  if (manifest === undefined) return
  const idKey = idKeyOf(folder)
  const isReplaced = hashOf(readPrivateFile(idKey) ?? '') !== manifest.idKeySha256
  const hasSandboxes = manifest.databases.length > 0
  if (hasSandboxes && isReplaced)
    throw new SandwireError(
      'bad_request',
      `Cannot access the sandboxes in this data folder: "${idKey}" ${existsSync(idKey) ? 'was replaced' : 'is missing'}\nhint: restore it from a backup, or choose another folder with --data`,
    )
  const missing = manifest.databases.filter((file) => !hasContent(path.join(folder.root, file)))
  const [first] = missing
  if (acceptsMissing || first === undefined) return
  const file = path.join(folder.root, first)
  const more = missing.length === 1 ? '' : ` and ${missing.length - 1} more`
  throw new SandwireError(
    'bad_request',
    `Cannot use the data folder "${folder.root}": the database "${file}"${more} is missing or empty\nhint: mount its disk or restore a backup; to go on without it, add --accept-missing (see docs/operations.md)`,
  )
}
