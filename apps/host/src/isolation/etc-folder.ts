import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { Binding } from './bwrap-argv.ts'
import { createEtcFiles, ETC_FROM_HOST, ETC_LINKS } from './etc-files.ts'

/** What of `/etc` comes from this machine, as bubblewrap binds it over the sandbox's own. */
export function hostEtcBindings(): Binding[] {
  return ETC_FROM_HOST.filter(({ name }) => existsSync(`/etc/${name}`)).map(({ name }) => ({
    from: `/etc/${name}`,
    to: `/etc/${name}`,
  }))
}

/** Writes the `/etc` of a sandbox anew, with places for what comes from this machine. */
export function writeEtcFolder(folder: string, hostname: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  for (const [name, text] of Object.entries(createEtcFiles(hostname)))
    writeFileSync(path.join(folder, name), text, { mode: 0o644 })
  for (const [name, target] of Object.entries(ETC_LINKS)) symlinkSync(target, path.join(folder, name))
  for (const { name, kind } of ETC_FROM_HOST) {
    if (!existsSync(`/etc/${name}`)) continue
    const place = path.join(folder, name)
    mkdirSync(kind === 'folder' ? place : path.dirname(place), { recursive: true, mode: 0o755 })
    if (kind === 'file') closeSync(openSync(place, 'w', 0o644))
  }
}

const SYSTEM_FOLDERS = ['bin', 'sbin', 'lib', 'lib32', 'lib64']

/** System folders that are links into `/usr` on this machine. */
export function usrLinks(): string[] {
  return SYSTEM_FOLDERS.filter((name) => linkTarget(`/${name}`) === `usr/${name}`)
}

/** System folders that are folders of their own, as on systems from before the merge into `/usr`. */
export function ownSystemFolders(): Binding[] {
  return SYSTEM_FOLDERS.map((name) => `/${name}`)
    .filter((folder) => lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true)
    .map((folder) => ({ from: folder, to: folder }))
}

function linkTarget(file: string): string | undefined {
  try {
    return readlinkSync(file).replace(/^\//, '')
  } catch {
    // Absent, or a folder of its own.
    return undefined
  }
}
