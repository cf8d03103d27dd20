import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isSandboxId } from '@sandwire/internal-api'
import { SandwireError, schema } from '@sandwire/protocol'
import { databaseOf, EMPTY_DATABASE_BYTES, hasTables } from '../control/object-databases.ts'
import { SANDBOX_OBJECTS } from '../control/workerd-config.ts'
import { describeCause, type Log } from '../log.ts'
import { filesIn } from '../supervisor/sandbox-files.ts'
import type { DataFolder } from './data-folder.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

/** File in the folder of versions. */
const STORE_ID = 'store-id'
const STORE_ID_FORMAT = /^[0-9a-f]{32}$/

const manifestSchema = schema.record({
  /** Hash of the key of sandbox ids: with another key sandboxes are inaccessible. */
  idKeySha256: schema.text(64),
  /** Paths of databases in the data folder. */
  databases: schema.list(schema.text(1024), 10_000_000),
  /** Paths of write-ahead logs that are there until the server stops. */
  logs: schema.optional(schema.list(schema.text(1024), 100)),
  /** Sandboxes with files whose databases were missing, which the operator accepted. */
  orphans: schema.optional(schema.list(schema.text(32), 10_000_000)),
  /** The folder of versions, relative to the data folder, and the id in it. */
  store: schema.optional(schema.record({ folder: schema.text(4096), id: schema.text(32, STORE_ID_FORMAT) })),
})
type Manifest = schema.Decoded<typeof manifestSchema>

const KEEP_MS = 60_000
const REMEDY = 'mount its disk or restore a backup'
/**
 * The log of workerd's database of alarms, which is open as long as workerd runs. Logs of other databases come and go; a copy without
 * any of them lacks these too.
 */
const LASTING_LOG = 'metadata.sqlite-wal'

type ManifestFolder = Pick<DataFolder, 'root' | 'keys' | 'objects' | 'manifest' | 'sandboxes'>

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

/**
 * Sandboxes of this machine whose databases are missing or empty. Control stores a sandbox before the host creates its files,
 * and forgets it after they are removed.
 */
function findOrphans({ sandboxes, objects }: ManifestFolder): string[] {
  if (!existsSync(sandboxes)) return []
  return readdirSync(sandboxes)
    .filter((id) => isSandboxId(id) && existsSync(filesIn(path.join(sandboxes, id)).spec))
    .filter((id) => !hasTables(databaseOf(objects, SANDBOX_OBJECTS, id)))
    .toSorted()
}

/** Records what the data folder must contain from now on; when the server stops, logs may disappear. */
export function writeManifest(
  folder: ManifestFolder,
  {
    isStopping = false,
    ...changes
  }: { isStopping?: boolean } & Pick<Partial<Manifest>, 'orphans' | 'store'> = {},
): void {
  const { orphans, store: versions } = { ...readManifest(folder), ...changes }
  store(folder, {
    idKeySha256: hashOf(readPrivateFile(idKeyOf(folder)) ?? ''),
    databases: listDatabases(folder),
    logs: isStopping ? [] : listLogs(folder),
    ...(orphans !== undefined && { orphans }),
    ...(versions !== undefined && { store: versions }),
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
  /** To be called when control has started, and with it the write-ahead logs. */
  started(): void
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
    started: write,
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

/** Undefined when missing or malformed. The id is not secret, and the file system may not support private files. */
function readStoreId(file: string): string | undefined {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return STORE_ID_FORMAT.test(text) ? text : undefined
}

/** Throws when the folder of versions is not the one that was there, as while its disk is not mounted; records a new one. */
export function requireStore(
  folder: ManifestFolder,
  versions: string,
  { acceptsMissing }: { readonly acceptsMissing: boolean },
): void {
  const file = path.join(versions, STORE_ID)
  const found = readStoreId(file)
  const known = readManifest(folder)?.store
  const relative = path.relative(folder.root, versions)
  if (known?.folder === relative && known.id !== found && !acceptsMissing)
    throw missing(
      folder,
      'the store of versions was replaced, or its',
      [path.join(relative, STORE_ID)],
      REMEDY,
    )
  const id = found ?? Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
  if (found === undefined) {
    mkdirSync(versions, { recursive: true, mode: 0o700 })
    writeFileSync(file, id)
  }
  if (known?.folder !== relative || known.id !== id)
    writeManifest(folder, { store: { folder: relative, id } })
}

function hasContent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0
}

interface ContentOptions {
  /** Only the key must be there; orphans are accepted from now on. */
  readonly acceptsMissing: boolean
  /** False with another provider: destroying a sandbox then leaves its files on this machine alone. */
  readonly hasSandboxes: boolean
}

/**
 * Throws when something that the manifest lists, or the database of a sandbox of this machine, is missing, empty or replaced, and
 * names it: workerd would start with empty databases instead. Returns the ids of accepted orphans.
 */
export function requireContent(
  folder: ManifestFolder,
  { acceptsMissing, hasSandboxes }: ContentOptions,
): readonly string[] {
  const manifest = readManifest(folder)
  if (manifest !== undefined) requireListed(folder, manifest, acceptsMissing)
  const orphans = hasSandboxes ? findOrphans(folder) : []
  if (acceptsMissing && orphans.length > 0) writeManifest(folder, { orphans })
  const accepted = new Set(acceptsMissing ? orphans : manifest?.orphans)
  const files = orphans
    .filter((id) => !accepted.has(id))
    .map((id) => path.relative(folder.root, databaseOf(folder.objects, SANDBOX_OBJECTS, id)))
  if (files.length > 0) throw missing(folder, 'sandboxes have files, and the database', files, REMEDY)
  return orphans
}

function requireListed(folder: ManifestFolder, manifest: Manifest, acceptsMissing: boolean): void {
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
  if (files.length > 0) throw missing(folder, 'the database', files, REMEDY)
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
