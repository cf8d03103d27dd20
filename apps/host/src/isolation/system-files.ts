import {
  accessSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { Binding } from './bwrap-argv.ts'
import { ensureVersionFolder, type VersionedContent } from './version-folder.ts'

/** Generated files of `/etc` in a sandbox. `name` is its host name. */
export function createEtcFiles(name: string): Readonly<Record<string, string>> {
  return {
    passwd: [
      'root:x:0:0:sandboxd:/:/usr/sbin/nologin',
      'user:x:1000:1000:user:/home/user:/bin/bash',
      'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
      '',
    ].join('\n'),
    group: 'root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n',
    hosts: `127.0.0.1 localhost ${name}\n::1 localhost\n`,
    hostname: `${name}\n`,
    'nsswitch.conf':
      'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n',
    'host.conf': 'multi on\n',
    // No DNS; the egress proxy resolves names.
    'resolv.conf': '',
    shells: '/bin/sh\n/bin/bash\n',
    profile: PROFILE,
    'bash.bashrc': BASHRC,
  }
}

/** Read by login shells. */
const PROFILE = `PATH="$HOME/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
export PATH
if [ -n "$BASH_VERSION" ] && [ -f /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi
`

/** Read by interactive bash. Each prompt reports the working directory (OSC 7), so that printed paths can be opened. */
const BASHRC = `case $- in *i*) ;; *) return ;; esac
shopt -s checkwinsize
PS1='\\u@\\h:\\w\\$ '
__tell_folder() {
  local folder=\${PWD//%/%25}
  printf '\\033]7;file://%s%s\\033\\\\' "$HOSTNAME" "\${folder//[[:cntrl:]]/}"
}
PROMPT_COMMAND=__tell_folder
`

/** Links of `/etc`, by name. */
const ETC_LINKS: Readonly<Record<string, string>> = {
  mtab: '/proc/mounts',
  'os-release': '/usr/lib/os-release',
}

/**
 * Entries of `/etc` that common programs need: copied from this machine if they exist. None of them reveals users or network
 * settings.
 */
const ETC_FROM_HOST: readonly { readonly name: string; readonly kind: 'file' | 'folder' }[] = [
  { name: 'alternatives', kind: 'folder' },
  { name: 'ld.so.cache', kind: 'file' },
  { name: 'ld.so.conf', kind: 'file' },
  { name: 'ld.so.conf.d', kind: 'folder' },
  { name: 'localtime', kind: 'file' },
  { name: 'mime.types', kind: 'file' },
  { name: 'protocols', kind: 'file' },
  { name: 'services', kind: 'file' },
  { name: 'ssl/certs', kind: 'folder' },
  { name: 'ssl/openssl.cnf', kind: 'file' },
  { name: 'terminfo', kind: 'folder' },
  { name: 'vim', kind: 'folder' },
]

/**
 * Copies this machine's `/etc` entries into a version folder; returns its path. A changed entry makes another version. Every start
 * of a sandbox calls it, so by default the folder only has to exist.
 */
export function ensureHostEtc(
  cacheFolder: string,
  isIntact: (folder: string) => boolean = existsSync,
): string {
  const found = ETC_FROM_HOST.flatMap((entry) => {
    const stat = statSync(`/etc/${entry.name}`, { throwIfNoEntry: false })
    return stat === undefined ? [] : [{ ...entry, key: [entry.name, stat.ino, stat.size, stat.mtimeMs] }]
  })
  const content: VersionedContent = {
    name: 'etc',
    version: Bun.hash(JSON.stringify(found.map(({ key }) => key))).toString(36),
    write: (folder) => {
      for (const { name, kind } of found) {
        const target = path.join(folder, name)
        mkdirSync(path.dirname(target), { recursive: true, mode: 0o755 })
        if (kind === 'file') copyFileSync(`/etc/${name}`, target)
        else cpSync(`/etc/${name}`, target, { recursive: true, verbatimSymlinks: true, filter: isReadable })
      }
    },
  }
  return ensureVersionFolder(cacheFolder, content, isIntact)
}

function isReadable(file: string): boolean {
  if (lstatSync(file).isSymbolicLink()) return true
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    // Not for every user, so not for sandboxes.
    return false
  }
}

/** Writes the generated files of the `/etc` of a sandbox. */
export function writeEtcFolder(folder: string, hostname: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  for (const [name, text] of Object.entries(createEtcFiles(hostname)))
    writeFileSync(path.join(folder, name), text, { mode: 0o644 })
  for (const [name, target] of Object.entries(ETC_LINKS)) symlinkSync(target, path.join(folder, name))
}

const SYSTEM_FOLDERS = ['bin', 'sbin', 'lib', 'lib32', 'lib64']

/** System folders that are symbolic links into `/usr`. */
export function usrLinks(): string[] {
  return SYSTEM_FOLDERS.filter((name) => linkTarget(`/${name}`) === `usr/${name}`)
}

/** System folders that are real folders, on systems without merged `/usr`. */
export function ownSystemFolders(): Binding[] {
  return SYSTEM_FOLDERS.map((name) => `/${name}`)
    .filter((folder) => lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true)
    .map((folder) => ({ from: folder, to: folder }))
}

function linkTarget(file: string): string | undefined {
  try {
    return readlinkSync(file).replace(/^\//, '')
  } catch {
    // Missing, or a real folder.
    return undefined
  }
}

const OWNER_MAY_WRITE = 0o200

/**
 * Read-only bindings of `/proc` for a sandbox whose processes have root's uid. The kernel lets that uid write kernel settings
 * without any capability, and bubblewrap 0.8 protects only folders that are writable themselves.
 */
export function procReadOnlyBindings(root = '/proc'): Binding[] {
  return readdirSync(root)
    .filter((name) => !/^[0-9]+$/.test(name) && isSwitch(path.join(root, name)))
    .map((name) => ({ from: path.join(root, name), to: path.join('/proc', name) }))
}

function isSwitch(file: string): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined || found.isSymbolicLink()) return false
  return found.isDirectory() || (found.mode & OWNER_MAY_WRITE) !== 0
}

/** Parts of `/proc` about devices, interrupts and users of the whole machine: they show when and how others use it. */
const MASKED_PROC = [
  'diskstats',
  'fs',
  'interrupts',
  'irq',
  'key-users',
  'keys',
  'partitions',
  'pressure',
  'sched_debug',
  'scsi',
  'softirqs',
  'swaps',
  'timer_list',
]

/** Those parts that this kernel has. */
export function maskedProcNames(): { readonly name: string; readonly kind: 'file' | 'folder' }[] {
  return MASKED_PROC.flatMap((name) => {
    const found = lstatSync(`/proc/${name}`, { throwIfNoEntry: false })
    return found === undefined ? [] : [{ name, kind: found.isDirectory() ? 'folder' : 'file' }]
  })
}
