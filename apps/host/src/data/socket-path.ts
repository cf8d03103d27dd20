import { createHash } from 'node:crypto'
import { rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { makePrivateFolder } from './private-file.ts'

/** `sun_path` has 108 bytes, including the final NUL. */
const MAX_SOCKET_PATH_BYTES = 107
/** Longest name in the folder: a sandbox id with its suffix. */
const MAX_NAME_BYTES = 32 + '.sock'.length

/** Opens the private folder for sockets of the host and of supervisors: in the data folder, or elsewhere when that path is too long. */
export function openSocketFolder(
  dataFolder: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const inside = path.join(dataFolder, 'run')
  const folder = isShortEnough(inside) ? inside : shortFolder(dataFolder, env)
  makePrivateFolder(folder)
  return folder
}

/** Removes the folder unless supervisors still have sockets in it. */
export function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // In use, or gone.
  }
}

export function hostSocketIn(folder: string): string {
  return path.join(folder, 'host.sock')
}

/** Socket of the store of versions. */
export function storeSocketIn(folder: string): string {
  return path.join(folder, 'store.sock')
}

/** Socket of the egress proxy of containers. */
export function egressSocketIn(folder: string): string {
  return path.join(folder, 'egress.sock')
}

function isShortEnough(folder: string): boolean {
  return Buffer.byteLength(`${folder}/`) + MAX_NAME_BYTES <= MAX_SOCKET_PATH_BYTES
}

function shortFolder(dataFolder: string, env: Readonly<Record<string, string | undefined>>): string {
  const mark = createHash('sha256').update(dataFolder).digest('hex').slice(0, 12)
  const name = `sandwire-${process.getuid?.() ?? 0}-${mark}`
  const candidates = [env['XDG_RUNTIME_DIR'], tmpdir(), '/tmp'].filter((each) => each?.startsWith('/'))
  const folders = candidates.map((each) => path.join(each ?? '', name))
  return folders.find(isShortEnough) ?? path.join('/tmp', name)
}
