import { createHash } from 'node:crypto'
import path from 'node:path'
import { isLoopbackUrl } from '@sandwire/operator-settings'
import type { PathFlags, UpFlags } from './arguments.ts'
import { showPath } from './data/folder-problem.ts'
import { type Containers, validateContainers } from './settings/containers.ts'
import { type Credentials, validateCredentials } from './settings/credentials.ts'
import { type DiskSettings, validateDisk } from './settings/disk.ts'
import { type Environment, read } from './settings/input.ts'
import { hasIdentity, type Identity, validateIdentity } from './settings/identity.ts'
import { validateListenSettings, type ListenSettings } from './settings/listen.ts'
import { validateSettingsFile, type SettingsFile } from './settings/settings-file.ts'
import { type Sprites, usesSprites, validateSprites } from './settings/sprites.ts'
import { type StoreSettings, validateBackupHours, validateStore } from './settings/store.ts'

export const DEFAULT_PORT = 8787

/** The environment and file system as validation sees them; replaced in tests. */
export interface ConfigurationContext {
  readonly env: Environment
  readonly cwd: string
  readonly home: string
  /** Resolves symbolic links as far as the path exists. */
  readonly realPath: (file: string) => string
  readonly isFolder: (file: string) => boolean
  /** Why a folder cannot be created there; undefined when no problem is known. */
  readonly folderProblem: (folder: string) => string | undefined
  /** Owner of a file; undefined when there is none. */
  readonly ownerOf: (file: string) => number | undefined
  /** The current user. */
  readonly uid: number
  /** Files and folders that this program runs from or trusts. */
  readonly ownPaths: readonly string[]
  /** Reads a file that other users cannot change; undefined when missing, throws the reason otherwise. */
  readonly readFile: (file: string) => string | undefined
  /** Reads a file that other users cannot open; throws the reason otherwise. */
  readonly readSecretFile: (file: string) => string
}

/** The data folder of an installation, and the folder it serves. */
export interface InstallationPaths {
  readonly dataFolder: string
  /** Folder that is served as the only sandbox; absent when sandboxes are created on demand. */
  readonly workspace?: string
}

export interface Configuration extends InstallationPaths, ListenSettings, Identity, Credentials {
  readonly port: number
  /** Settings that are passed to control. */
  readonly passed: SettingsFile['passed']
  /** Limits on connections; absent ones are derived from the machine. */
  readonly connections: SettingsFile['connections']
  /** Absent: the strongest that works on this machine. */
  readonly isolation?: 'bubblewrap' | 'none'
  /** Absent: the host creates sandboxes itself. */
  readonly containers?: Containers
  /** Absent: sandboxes run on this machine. */
  readonly sprites?: Sprites
  readonly disk: DiskSettings
  /** Absent: files are not saved. */
  readonly store?: StoreSettings
  /** Hours between copies of control's own data to the store; 0: none. */
  readonly backupHours: number
}

/** A valid value, or all problems: one line each, with what to do. */
export type Validated<T> =
  | { readonly isOk: true; readonly value: T }
  | { readonly isOk: false; readonly problems: readonly string[] }

/** The caller's folder: npm changes it before it runs `start`. */
function callerFolder({ env, cwd }: ConfigurationContext): string {
  return env['npm_lifecycle_event'] === 'start' ? (read(env, 'INIT_CWD') ?? cwd) : cwd
}

function isInside(inner: string, outer: string): boolean {
  const relative = path.relative(outer, inner)
  return relative !== '..' && !relative.startsWith(`..${path.sep}`)
}

/** The default data folder of a served folder: in the user's state folder, because nothing is written into the workspace. */
function dataFolderFor(workspace: string, { env, home }: ConfigurationContext): string {
  const state = read(env, 'XDG_STATE_HOME') ?? path.join(home, '.local', 'state')
  const mark = createHash('sha256').update(workspace).digest('hex').slice(0, 12)
  return path.join(state, 'sandwire', mark)
}

/** True when a user of the sandbox could change this program or its settings through the folder. */
function isOurs(folder: string, { ownPaths, realPath }: ConfigurationContext): boolean {
  const all = [...ownPaths, ...ownPaths.map(realPath)]
  return all.some((file) => isInside(file, folder) || isInside(folder, file))
}

function validateWorkspace(
  flags: PathFlags,
  context: ConfigurationContext,
  problems: string[],
): string | undefined {
  const mode = read(context.env, 'WORKSPACE_MODE')
  if (mode !== undefined && mode !== 'local' && mode !== 'sandbox')
    problems.push(`WORKSPACE_MODE is "${mode}": set it to local or sandbox, or unset it`)
  if (mode === 'sandbox' && flags.workspace !== undefined)
    problems.push('--workspace cannot be combined with WORKSPACE_MODE=sandbox: remove one of them')
  const given = flags.workspace ?? (mode === 'local' ? '.' : undefined)
  if (given === undefined) return undefined
  const folder = context.realPath(path.resolve(callerFolder(context), given))
  if (!context.isFolder(folder))
    problems.push(`The workspace "${folder}" is not a folder: choose an existing one with --workspace`)
  else if (context.ownerOf(folder) !== context.uid)
    problems.push(
      `The workspace "${folder}" belongs to user ${context.ownerOf(folder)}: start sandwire as that user`,
    )
  else if (isOurs(folder, context))
    problems.push(
      `The workspace "${folder}" overlaps Sandwire's own program or settings, which the sandbox could then change: choose another folder with npx sandwire up --workspace DIR`,
    )
  return folder
}

function validatePathsInto(
  flags: PathFlags,
  context: ConfigurationContext,
  problems: string[],
): InstallationPaths {
  const workspace = validateWorkspace(flags, context, problems)
  const given = flags.data ?? read(context.env, 'SANDWIRE_DATA')
  const fallback = workspace === undefined ? '.sandwire' : dataFolderFor(workspace, context)
  const dataFolder = context.realPath(path.resolve(callerFolder(context), given ?? fallback))
  const problem = context.folderProblem(dataFolder)
  if (problem !== undefined)
    problems.push(
      `Cannot use the data folder ${showPath(dataFolder)}: ${problem}; choose another with --data`,
    )
  if (workspace === undefined) return { dataFolder }
  if (isInside(dataFolder, workspace))
    problems.push(
      `The data folder "${dataFolder}" is inside the workspace, where the sandbox could read its keys: choose another with --data`,
    )
  else if (isInside(workspace, dataFolder))
    problems.push(`The workspace is inside the data folder "${dataFolder}": choose another with --data`)
  return { dataFolder, workspace }
}

function validatePort(flags: UpFlags, env: Environment, problems: string[]): number {
  const text = flags.port ?? read(env, 'SANDWIRE_PORT')
  if (text === undefined) return DEFAULT_PORT
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  const name = flags.port === undefined ? 'SANDWIRE_PORT' : '--port'
  problems.push(`${name} is "${text}": give a whole number from 0 to 65535`)
  return DEFAULT_PORT
}

/** Other users require isolation. */
function validateIsolation(
  env: Environment,
  hasOtherUsers: boolean,
  problems: string[],
): Configuration['isolation'] {
  const text = read(env, 'SANDWIRE_ISOLATION')
  if (text === 'none' && hasOtherUsers)
    problems.push(
      'SANDWIRE_ISOLATION is "none": everyone who signs in would run commands as you; set it to bubblewrap',
    )
  // Without isolation only the local user may sign in.
  if (text === undefined && hasOtherUsers) return 'bubblewrap'
  if (text === undefined || text === 'bubblewrap' || text === 'none') return text
  problems.push(`SANDWIRE_ISOLATION is "${text}": set it to bubblewrap or none, or unset it`)
  return undefined
}

/** Rejects loopback issuers in open mode: users sign in from their own machines. Issuers without a client id only verify tokens. */
function refuseLoopbackIssuers({ issuers }: Identity, problems: string[]): void {
  for (const { issuer, clientId } of issuers)
    if (clientId !== undefined && isLoopbackUrl(issuer))
      problems.push(
        `The issuer "${issuer}" is on loopback, which users on other machines cannot listen: give it a public https URL, or remove its client id to accept only its tokens`,
      )
}

/** Path of the settings file. It decides who can sign in, so it must not be in the workspace. */
function validateSettingsPath(
  { dataFolder, workspace }: InstallationPaths,
  context: ConfigurationContext,
  problems: string[],
): string {
  const given = read(context.env, 'SANDWIRE_SETTINGS')
  const file =
    given === undefined ? path.join(dataFolder, 'settings.json') : path.resolve(callerFolder(context), given)
  if (given === undefined) return file
  if (workspace !== undefined && isInside(context.realPath(file), workspace))
    problems.push(
      `SANDWIRE_SETTINGS is "${file}": it is inside the workspace, where the sandbox could change it`,
    )
  if (context.ownerOf(file) === undefined)
    problems.push(`SANDWIRE_SETTINGS is "${file}": no such file, or this user cannot read it`)
  return file
}

/** Keys are never stored in another user's folder, even if it is writable. */
function rejectForeignFolder(
  { dataFolder }: InstallationPaths,
  { ownerOf, uid }: ConfigurationContext,
  problems: string[],
): void {
  const owner = ownerOf(dataFolder)
  if (owner !== undefined && owner !== uid)
    problems.push(
      `Cannot use the data folder "${dataFolder}": it belongs to user ${owner}; start sandwire as that user, or choose another with --data`,
    )
}

/** Validates the data folder and workspace alone. */
export function validatePaths(flags: PathFlags, context: ConfigurationContext): Validated<InstallationPaths> {
  const problems: string[] = []
  const value = validatePathsInto(flags, context, problems)
  return problems.length === 0 ? { isOk: true, value } : { isOk: false, problems }
}

/** Validates all options of `up`; reports every problem at once. */
export function validateConfiguration(
  flags: UpFlags,
  context: ConfigurationContext,
): Validated<Configuration> {
  const problems: string[] = []
  const paths = validatePathsInto(flags, context, problems)
  rejectForeignFolder(paths, context, problems)
  const port = validatePort(flags, context.env, problems)
  const settings = validateSettingsFile(
    validateSettingsPath(paths, context, problems),
    context.readFile,
    problems,
  )
  const identity = validateIdentity(context, settings.issuers, problems)
  const listen = validateListenSettings({ ...context, hasIdentity: hasIdentity(identity) }, problems)
  const isolation = validateIsolation(context.env, hasIdentity(identity) || listen.mode === 'open', problems)
  const containers = validateContainers(
    context.env,
    { hasWorkspace: paths.workspace !== undefined },
    problems,
  )
  const sprites = validateSprites(
    context.env,
    {
      hasWorkspace: paths.workspace !== undefined,
      hasOtherUsers: hasIdentity(identity) || listen.mode === 'open',
      secrets: identity.secrets,
    },
    problems,
  )
  const disk = validateDisk(context.env, problems)
  const credentials = validateCredentials(context.env, settings.credentials, context.readSecretFile, problems)
  // A served folder is the operator's own; a sprite keeps its files and has checkpoints.
  const hasStore = !usesSprites(context.env) || read(context.env, 'SANDWIRE_STORE') !== undefined
  const store =
    paths.workspace === undefined && hasStore
      ? validateStore(context.env, { dataFolder: paths.dataFolder, secrets: identity.secrets }, problems)
      : undefined
  const backupHours = validateBackupHours(context.env, problems)
  if (listen.mode === 'open') refuseLoopbackIssuers(identity, problems)
  if (paths.workspace !== undefined && listen.mode === 'open')
    problems.push(
      'A served folder is only for the local user: remove --workspace and WORKSPACE_MODE, or listen on loopback only',
    )
  if (problems.length > 0) return { isOk: false, problems }
  const { passed, connections } = settings
  return {
    isOk: true,
    value: {
      ...paths,
      ...identity,
      ...listen,
      ...credentials,
      port,
      passed,
      connections,
      disk,
      ...(store !== undefined && { store }),
      backupHours,
      ...(sprites !== undefined && { sprites }),
      ...(containers === undefined ? isolation && { isolation } : { containers }),
    },
  }
}
