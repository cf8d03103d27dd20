import { closeSync, constants, lchownSync, lstatSync, openSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { giveSocket, makeGroupFolder } from '../data/private-file.ts'
import { UidClaims } from '../isolation/uid-claims.ts'
import { canRun, findTool } from '../isolation/system-tools.ts'

/** The user and group that workerd runs as, when the host is root. */
export interface ControlUser {
  readonly id: number
}

/** Owner of the claim on the id; no sandbox has this id. */
const CLAIM = 'control'
const OTHERS_ENTER = 0o005
const FIRST_PORT_OF_USERS = 1024

/** Claims the user of workerd. The id stays with the data folder. Undefined without root, and where root cannot become that user. */
export function claimControlUser(dataFolder: string): ControlUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const user = { id: new UidClaims(dataFolder).claim(CLAIM, () => true).daemon }
  // Not in a container whose user namespace lacks the id, or without these capabilities.
  return canRun(becomeControlUser(user, [])) ? user : undefined
}

/** Why workerd cannot run as its user; undefined when it can. Its program and the workbench belong to the installation. */
export function findControlUserProblem(
  user: ControlUser | undefined,
  program: string,
  workbench: string,
): string | undefined {
  if (findTool('setpriv') === null) return 'setpriv (util-linux) is not installed'
  if (user === undefined) return 'this machine does not let root run programs as other users'
  const closed = [path.dirname(program), program, workbench].find(
    (file) => (statSync(file).mode & OTHERS_ENTER) !== OTHERS_ENTER,
  )
  return closed === undefined ? undefined : `other users may not use "${closed}"`
}

/** Gives workerd its databases, and lets its group connect to the host. Called before every start of the host. */
export function giveAccess(
  { id }: ControlUser,
  files: { readonly objects: string; readonly hostSocket: string; readonly storeSocket?: string },
): void {
  giveTree(files.objects, id)
  makeGroupFolder(path.dirname(files.hostSocket), id)
  for (const socket of [files.hostSocket, files.storeSocket])
    if (socket !== undefined) giveSocket(socket, process.getuid?.() ?? 0, id)
}

/** Databases of earlier versions, restored backups and files that the host created while it read them belong to root. */
function giveTree(file: string, id: number): void {
  const found = lstatSync(file)
  if (found.uid !== id || found.gid !== id) lchownSync(file, id, id)
  if (found.isDirectory()) for (const name of readdirSync(file)) giveTree(path.join(file, name), id)
}

/** Command prefix that runs a program as this user: no other group, no capability, and no way to gain one. */
export function becomeControlUser({ id }: ControlUser, listen: readonly string[]): string[] {
  const ports = listen.map((address) => Number(new URL(`http://${address}`).port || '80'))
  // A port of the system needs this one.
  const kept = ports.some((port) => port > 0 && port < FIRST_PORT_OF_USERS) ? ',+net_bind_service' : ''
  return [
    findTool('setpriv') ?? 'setpriv',
    `--reuid=${id}`,
    `--regid=${id}`,
    '--clear-groups',
    '--no-new-privs',
    `--bounding-set=-all${kept}`,
    `--inh-caps=-all${kept}`,
    `--ambient-caps=-all${kept}`,
    '--',
  ]
}

/** Opens a path without read permission. */
const O_PATH = 0o10000000

/**
 * Folders that a program of another user gets as descriptors: it uses them by `/proc/self/fd`, whatever folders are above them. Each
 * start of the program inherits `fds`, from `first` on.
 */
export class InheritedFolders implements Disposable {
  readonly fds: number[] = []
  readonly #first: number
  readonly #paths = new Map<string, string>()

  constructor(first: number) {
    this.#first = first
  }

  /** Path of a folder for the program. */
  folder(folder: string): string {
    const known = this.#paths.get(folder)
    if (known !== undefined) return known
    const inside = `/proc/self/fd/${this.#first + this.fds.length}`
    this.fds.push(openSync(folder, O_PATH | constants.O_DIRECTORY))
    this.#paths.set(folder, inside)
    return inside
  }

  /** Path of a file for the program, which need not exist yet. */
  file(file: string): string {
    return `${this.folder(path.dirname(file))}/${path.basename(file)}`
  }

  [Symbol.dispose](): void {
    for (const fd of this.fds.splice(0)) closeSync(fd)
  }
}
