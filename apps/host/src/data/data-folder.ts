import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { toFolderError } from './folder-problem.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts'

/** Paths in a data folder. Only this user can enter it. */
export interface DataFolder {
  readonly root: string
  /** Locked by the host that uses the folder. */
  readonly lock: string
  /** Format of the rest. */
  readonly format: string
  /** Which folder this is, to tell a copy from the original. */
  readonly identity: string
  /** The running workerd, so that the next host can kill an orphaned one. */
  readonly workerd: string
  readonly keys: string
  /** The token of `sbx-stdio` on this machine. */
  readonly localToken: string
  /** Databases of control's objects. */
  readonly objects: string
  /** Bundles; rebuilt when missing. */
  readonly cache: string
  /** One folder for each sandbox. */
  readonly sandboxes: string
  readonly log: string
  /** What must be in the folder at the next start. */
  readonly manifest: string
  /** Space that is held back for control. */
  readonly reserve: string
}

export function dataFolderAt(root: string): DataFolder {
  const at = (name: string): string => path.join(root, name)
  return {
    root,
    lock: at('lock'),
    format: at('format'),
    identity: at('identity'),
    workerd: at('workerd'),
    keys: at('keys'),
    localToken: at('local-token'),
    objects: at('control'),
    cache: at('cache'),
    sandboxes: at('sandboxes'),
    log: at('host.log'),
    manifest: at('manifest.json'),
    reserve: at('reserve'),
  }
}

/** Names that may exist in a folder before its first use. */
const ALLOWED_NAMES: ReadonlySet<string> = new Set(['settings.json', 'lost+found'])

/** The folder becomes private, so one that other users can enter and that contains other files is refused. */
function rejectOccupiedFolder({ root, localToken, keys, format }: DataFolder): void {
  const found = statSync(root, { throwIfNoEntry: false })
  if (found === undefined || (found.mode & 0o077) === 0) return
  // Any of these marks a folder that was used before, even if other files were moved away.
  if ([localToken, path.join(keys, 'id-key'), format].some((each) => existsSync(each))) return
  const parts = new Set(Object.values(dataFolderAt('')))
  if (readdirSync(root).every((name) => parts.has(name) || ALLOWED_NAMES.has(name))) return
  throw new SandwireError(
    'forbidden',
    `Cannot use the data folder "${root}": it contains other files, and would become inaccessible to other users`,
  )
}

/** Creates the folder and its subfolders. */
export function openDataFolder(root: string): DataFolder {
  const folder = dataFolderAt(root)
  try {
    rejectOccupiedFolder(folder)
    for (const each of [root, folder.keys, folder.cache, folder.sandboxes]) makePrivateFolder(each)
    // With root it belongs to workerd's user.
    mkdirSync(folder.objects, { recursive: true, mode: 0o700 })
    return folder
  } catch (error) {
    if (!(error instanceof SandwireError)) throw toFolderError(error, root)
    throw new SandwireError('forbidden', `${error.message}\nhint: choose another folder with --data`)
  }
}

/** Raised with every change that another version would misread. Folders of another format are refused, never converted. */
const DATA_FORMAT = 3

/** Writes the format into a new folder. Throws for a folder that a version with another format has used. */
export function claimFormat(
  { root, format, objects }: Pick<DataFolder, 'root' | 'format' | 'objects'>,
  known = DATA_FORMAT,
): void {
  const text = readPrivateFile(format)?.trim() ?? ''
  if (text === String(known)) return
  const isNew = text === '' && (!existsSync(objects) || readdirSync(objects).length === 0)
  if (!isNew) {
    const found = text === '' ? 'an older version' : `format ${JSON.stringify(text)}`
    throw new SandwireError(
      'bad_request',
      `Cannot use the data folder "${root}": it was written by ${found}, and this version needs format ${known}\nhint: use the version that wrote it, or choose another folder with --data`,
    )
  }
  writePrivateFile(format, `${known}\n`)
}
