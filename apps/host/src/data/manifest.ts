import { createHash } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { SandwireError, schema } from '@sandwire/protocol'
import { describeCause, type Log } from '../log.ts'
import type { DataFolder } from './data-folder.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

const manifestSchema = schema.record({
  /** Hash of the key of sandbox ids: with another key sandboxes are inaccessible. */
  idKeySha256: schema.text(64),
  /** Paths of databases in the data folder. */
  databases: schema.list(schema.text(1024), 10_000_000),
  /** Paths of write-ahead logs that are there until the server stops. */
  logs: schema.optional(schema.list(schema.text(1024), 100)),
})
type Manifest = schema.Decoded<typeof manifestSchema>

/** The database of a destroyed sandbox is smaller, and is removed; one with tables is larger. */
const EMPTY_DATABASE_BYTES = 4096

const KEEP_MS = 60_000
/**
 * The log of workerd's database of alarms, which is open as long as workerd runs. Logs of other databases come and go; a copy without
 * any of them lacks these too.
 */
const LASTING_LOG = 'metadata.sqlite-wal'

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

function listLogs({ root, objects }: ManifestFolder): string[] {
  return readdirSync(objects, { recursive: true, encoding: 'utf8' })
    .filter((name) => path.basename(name) === LASTING_LOG)
    .map((name) => path.relative(root, path.join(objects, name)))
    .filter((name) => hasContent(path.join(root, name)))
    .toSorted()
}

/** Records what the data folder must contain from now on; when the server stops, logs may disappear. */
export function writeManifest(folder: ManifestFolder, { isStopping = false } = {}): void {
  store(folder, {
    idKeySha256: hashOf(readPrivateFile(idKeyOf(folder)) ?? ''),
    databases: listDatabases(folder),
    logs: isStopping ? [] : listLogs(folder),
  })
}

/** To be called before these databases are removed: a crash may prevent the next writeManifest. */
export function forgetDatabases(folder: ManifestFolder, files: readonly string[]): void {
  const manifest = readManifest(folder)
  if (manifest === undefined) return
  const removed = new Set(files.map((file) => path.relative(folder.root, file)))
  store(folder, { ...manifest, databases: manifest.databases.filter((name) => !removed.has(name)) })
}

function store(folder: ManifestFolder, manifest: Manifest): void {
  const text = `${JSON.stringify(manifest)}\n`
  if (readPrivateFile(folder.manifest) !== text) writePrivateFile(folder.manifest, text)
}

/** Keeps the manifest up to date: databases appear while control runs. On a full disk it stays as it was. */
export interface ManifestKeeper extends Disposable {
  /** To be called before control ends, and with it the write-ahead logs. */
  stop(): void
}

export function keepManifest(folder: ManifestFolder, log: Log): ManifestKeeper {
  let isStopping = false
  const write = (): void => {
    try {
      writeManifest(folder, { isStopping })
    } catch (error) {
      log.warn('manifest_not_written', { cause: describeCause(error) })
    }
  }
  write()
  const timer = setInterval(write, KEEP_MS)
  return {
    stop: () => {
      isStopping = true
      write()
    },
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
    return manifestSchema.decode(JSON.parse(text))
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
  if (acceptsMissing) return
  const files = manifest.databases.filter((file) => !hasContent(path.join(folder.root, file)))
  if (files.length > 0) throw missing(folder, 'the database', files, 'mount its disk or restore a backup')
  const logs = (manifest.logs ?? []).filter((file) => !hasContent(path.join(folder.root, file)))
  if (logs.length > 0)
    throw missing(
      folder,
      'the server was not stopped, and the write-ahead log',
      logs,
      'copy the files that end in -wal beside their databases',
    )
}

function missing(
  { root }: ManifestFolder,
  what: string,
  [first = '', ...others]: readonly string[],
  remedy: string,
): SandwireError {
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  return new SandwireError(
    'bad_request',
    `Cannot use the data folder "${root}": ${what} "${path.join(root, first)}"${more} is missing or empty\nhint: ${remedy}; to go on without it, add --accept-missing (see docs/operations.md)`,
  )
}
