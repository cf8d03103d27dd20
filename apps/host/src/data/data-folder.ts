import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { toFolderError } from './folder-problem.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts'

/** The parts of a data folder. Only this user can enter it. */
export interface DataFolder {
  readonly root: string
  /** Held by the host that uses the folder. */
  readonly lock: string
  /** Which format the rest has. */
  readonly format: string
  /** Which workerd runs control, so that the next host can end an orphaned one. */
  readonly workerd: string
  readonly keys: string
  /** What `sbx-stdio` on this machine signs in with. */
  readonly localToken: string
  /** State of control's objects. */
  readonly objects: string
  /** Bundles, which can be made again. */
  readonly cache: string
  /** State of sandboxes: theirs to lay out. */
  readonly sandboxes: string
  readonly log: string
}

export function dataFolderAt(root: string): DataFolder {
  const at = (name: string): string => path.join(root, name)
  return {
    root,
    lock: at('lock'),
    format: at('format'),
    workerd: at('workerd'),
    keys: at('keys'),
    localToken: at('local-token'),
    objects: at('control'),
    cache: at('cache'),
    sandboxes: at('sandboxes'),
    log: at('host.log'),
  }
}

/** What may be in a folder before it is used for the first time. */
const ALLOWED_NAMES: ReadonlySet<string> = new Set(['settings.json', 'lost+found'])

/** Nobody else may enter it from now on, so one that others can enter for other things is not taken. */
function rejectOccupiedFolder({ root, localToken, keys, format }: DataFolder): void {
  const found = statSync(root, { throwIfNoEntry: false })
  if (found === undefined || (found.mode & 0o077) === 0) return
  // One of these is left of a folder that was used before, whatever somebody has moved away.
  if ([localToken, path.join(keys, 'id-key'), format].some((each) => existsSync(each))) return
  const parts = new Set(Object.values(dataFolderAt('')))
  if (readdirSync(root).every((name) => parts.has(name) || ALLOWED_NAMES.has(name))) return
  throw new SandwireError(
    'forbidden',
    `Cannot use the data folder "${root}": it holds other things, and everybody else would be locked out of them`,
  )
}

/** Makes the folder and the parts that must exist before anybody looks. */
export function openDataFolder(root: string): DataFolder {
  const folder = dataFolderAt(root)
  try {
    rejectOccupiedFolder(folder)
    for (const each of [root, folder.keys, folder.objects, folder.cache, folder.sandboxes])
      makePrivateFolder(each)
    return folder
  } catch (error) {
    if (!(error instanceof SandwireError)) throw toFolderError(error, root)
    throw new SandwireError('forbidden', `${error.message}\nhint: choose another folder with --data`)
  }
}

/** Rises with what an older Sandwire would misread or lose; what it can leave alone does not raise it. */
const DATA_FORMAT = 1

/** Marks the folder with the format of what is in it. Throws where a newer Sandwire has been: it may have kept what this one would spoil. */
export function claimFormat(
  { root, format }: Pick<DataFolder, 'root' | 'format'>,
  known = DATA_FORMAT,
): void {
  const text = readPrivateFile(format)?.trim()
  if (text === String(known)) return
  // None, or cut short by a full disk: from before there was one.
  const found = text === undefined || text === '' ? 0 : Number(text)
  if (!(found <= known))
    throw new SandwireError(
      'bad_request',
      `Cannot use the data folder "${root}": its format "${text}" is not known to this Sandwire, which knows ${known}\nhint: use the newer version that has used it, or choose another folder with --data`,
    )
  writePrivateFile(format, `${known}\n`)
}
