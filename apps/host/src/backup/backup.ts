import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { SandwireError, schema, SOFTWARE_VERSION } from '@sandwire/protocol'
import { readWorkerd } from '../control/orphan-workerd.ts'
import { claimFormat, type DataFolder, dataFolderAt, openDataFolder } from '../data/data-folder.ts'
import { makePrivateFolder, writePrivateFile } from '../data/private-file.ts'
import { pinDatabases } from './pinned-databases.ts'

/** Files beside the databases and keys; what else is in a data folder is made again, or in the store of versions. */
const FILES = ['format', 'identity', 'local-token', 'settings.json'] as const
/** What a backup may contain; anything else is refused. */
const NAMES =
  /^(?:backup\.json|format|identity|local-token|settings\.json|keys\/[a-z-]{1,64}|control\/[a-z-]{1,32}\/(?:[0-9a-f]{64}|metadata)\.sqlite)$/
const INFORMATION = 'backup.json'

const informationSchema = schema.record({
  version: schema.text(64),
  createdMs: schema.nonNegativeInteger,
  databases: schema.nonNegativeInteger,
})
export type BackupInformation = schema.Decoded<typeof informationSchema>

export interface Backup {
  /** A gzipped tar archive with secret keys. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly information: BackupInformation
}

/** Copies the state of control at one moment, while it runs or not: its databases, keys and settings. */
export async function makeBackup(root: string, nowMs: number): Promise<Backup> {
  const folder = dataFolderAt(root)
  if (!existsSync(folder.format))
    throw new SandwireError(
      'bad_request',
      `Cannot back up "${root}": it is not a data folder\nhint: name it with --data`,
    )
  using pinned = await pinDatabases(folder.objects, readWorkerd(folder.workerd))
  const files: Record<string, Uint8Array<ArrayBuffer> | string> = {}
  for (const name of [...FILES, ...keyNames(folder)]) {
    const file = path.join(root, name)
    if (existsSync(file)) files[name] = new Uint8Array(readFileSync(file))
  }
  for (const database of pinned.databases) files[`control/${database.name}`] = database.read()
  const information = { version: SOFTWARE_VERSION, createdMs: nowMs, databases: pinned.databases.length }
  files[INFORMATION] = `${JSON.stringify(information)}\n`
  const bytes = await new Bun.Archive(files, { compress: 'gzip' }).bytes()
  return { bytes: new Uint8Array(bytes), information }
}

function keyNames({ keys }: DataFolder): readonly string[] {
  return existsSync(keys) ? readdirSync(keys).map((name) => `keys/${name}`) : []
}

/** Writes a backup into a new data folder. */
export async function restoreBackup(
  bytes: Uint8Array<ArrayBuffer>,
  root: string,
): Promise<BackupInformation> {
  const files = await readArchive(bytes)
  const information = informationSchema.decode(
    JSON.parse(new TextDecoder().decode(files.get(INFORMATION)) || 'null'),
  )
  if (information === undefined) throw notABackup()
  if (existsSync(root) && readdirSync(root).length > 0)
    throw new SandwireError(
      'conflict',
      `Cannot restore into "${root}": it is not empty\nhint: name a new folder with --data`,
    )
  const folder = openDataFolder(root)
  for (const [name, content] of files) {
    if (name === INFORMATION) continue
    const file = path.join(root, name)
    makePrivateFolder(path.dirname(file))
    writePrivateFile(file, content)
  }
  // Refuses the folder if another version wrote it.
  claimFormat(folder)
  return information
}

async function readArchive(
  bytes: Uint8Array<ArrayBuffer>,
): Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>> {
  const files = new Map<string, Uint8Array<ArrayBuffer>>()
  try {
    for (const [name, file] of await new Bun.Archive(bytes).files())
      files.set(name, new Uint8Array(await file.arrayBuffer()))
  } catch {
    throw notABackup()
  }
  if ([...files.keys()].some((name) => !NAMES.test(name))) throw notABackup()
  return files
}

function notABackup(): SandwireError {
  return new SandwireError('bad_request', 'Cannot restore: the file is not a backup of a data folder')
}
