import { createHash } from 'node:crypto'
import path from 'node:path'
import { isLoopbackUrl } from '@sandwire/operator-settings'
import type { PathFlags, UpFlags } from './arguments.ts'
import { showPath } from './data/folder-problem.ts'
import { type Containers, validateContainers } from './settings/containers.ts'
import { type Environment, read } from './settings/input.ts'
import { hasIdentity, type Identity, validateIdentity } from './settings/identity.ts'
import { validateListenSettings, type ListenSettings } from './settings/listen.ts'
import { validateSettingsFile, type SettingsFile } from './settings/settings-file.ts'

export const DEFAULT_PORT = 8787

/** What the world looks like to whoever judges a configuration. */
export interface ConfigurationContext {
  readonly env: Environment
  readonly cwd: string
  readonly home: string
  /** The path with links resolved as far as it exists. */
  readonly realPath: (file: string) => string
  readonly isFolder: (file: string) => boolean
  /** What keeps a folder from being made there, in words; undefined when nothing is known to. */
  readonly folderProblem: (folder: string) => string | undefined
  /** User whose file it is; undefined when there is none. */
  readonly ownerOf: (file: string) => number | undefined
  /** User who asks. */
  readonly uid: number
  /** Files and folders that this program runs from or believes. */
  readonly ownPaths: readonly string[]
  /** Text of a file that nobody else can change; undefined when there is none, and throws with the reason when it is no such file. */
  readonly readFile: (file: string) => string | undefined
  /** Text of a file that nobody else can open; throws with the reason when it is no such file. */
  readonly readSecretFile: (file: string) => string
}

/** Where an installation keeps its things, and what it serves. */
export interface InstallationPaths {
  readonly dataFolder: string
  /** Folder that is served as the one sandbox; absent when sandboxes are made. */
  readonly workspace?: string
}

export interface Configuration extends InstallationPaths, ListenSettings, Identity {
  readonly port: number
  /** Settings that are control's to judge. */
  readonly passed: SettingsFile['passed']
  /** Absent: the best this machine has. */
  readonly isolation?: 'bubblewrap' | 'none'
  /** Absent: the host makes sandboxes by itself. */
  readonly containers?: Containers
}

/** A value, or everything that is wrong with what was stopRequested: one line each, with the way out. */
export type Validated<T> =
  | { readonly isOk: true; readonly value: T }
  | { readonly isOk: false; readonly problems: readonly string[] }

/** Where the caller stands: npm changes the folder before it runs `start`. */
function callerFolder({ env, cwd }: ConfigurationContext): string {
  return env['npm_lifecycle_event'] === 'start' ? (read(env, 'INIT_CWD') ?? cwd) : cwd
}

function isInside(inner: string, outer: string): boolean {
  const relative = path.relative(outer, inner)
  return relative !== '..' && !relative.startsWith(`..${path.sep}`)
}

/** A served folder holds no data of ours, so its data folder is with the user's other state. */
function dataFolderFor(workspace: string, { env, home }: ConfigurationContext): string {
  const state = read(env, 'XDG_STATE_HOME') ?? path.join(home, '.local', 'state')
  const mark = createHash('sha256').update(workspace).digest('hex').slice(0, 12)
  return path.join(state, 'sandwire', mark)
}

/** Whether writing in a folder could change what this program is or does. */
function isOurs(folder: string, { ownPaths, realPath }: ConfigurationContext): boolean {
  const places = [...ownPaths, ...ownPaths.map(realPath)]
  return places.some((place) => isInside(place, folder) || isInside(folder, place))
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
    problems.push('--workspace serves one folder but WORKSPACE_MODE is sandbox: leave one of them out')
  const given = flags.workspace ?? (mode === 'local' ? '.' : undefined)
  if (given === undefined) return undefined
  const folder = context.realPath(path.resolve(callerFolder(context), given))
  if (!context.isFolder(folder))
    problems.push(`The workspace "${folder}" is not a folder: give an existing one with --workspace`)
  else if (context.ownerOf(folder) !== context.uid)
    problems.push(
      `The workspace "${folder}" belongs to user ${context.ownerOf(folder)}: start sandwire as that user, who alone can write there`,
    )
  else if (isOurs(folder, context))
    problems.push(
      `The workspace "${folder}" holds Sandwire's own program or settings, or lies in them, and whoever uses the sandbox could change them: serve another folder with npx sandwire up --workspace DIR`,
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
      `The data folder "${dataFolder}" is inside the workspace, where its keys could be read: choose another with --data`,
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

/** Who else than this machine's user can come in, and so how much sandboxes must hold. */
function validateIsolation(
  env: Environment,
  hasOtherUsers: boolean,
  problems: string[],
): Configuration['isolation'] {
  const text = read(env, 'SANDWIRE_ISOLATION')
  if (text === 'none' && hasOtherUsers)
    problems.push(
      'SANDWIRE_ISOLATION is "none": whoever signs in, other users of this machine among them, would run commands as you; set it to bubblewrap',
    )
  // Less than bubblewrap is for oneself only.
  if (text === undefined && hasOtherUsers) return 'bubblewrap'
  if (text === undefined || text === 'bubblewrap' || text === 'none') return text
  problems.push(`SANDWIRE_ISOLATION is "${text}": set it to bubblewrap or none, or unset it`)
  return undefined
}

/** Where others come in, they go to the issuer to sign in, and loopback is their own machine for them. Tokens alone do not lead there. */
function refuseLoopbackIssuers({ issuers }: Identity, problems: string[]): void {
  for (const { issuer, clientId } of issuers)
    if (clientId !== undefined && isLoopbackUrl(issuer))
      problems.push(
        `The issuer "${issuer}" is on loopback, which is another machine for whoever comes from elsewhere: give it a name that they can reach, with https, or no client id, and only its tokens are accepted`,
      )
}

/** Where the settings file is; whoever can write it decides who signs in. */
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
    problems.push(`SANDWIRE_SETTINGS is "${file}": it is inside the workspace, where it could be changed`)
  if (context.ownerOf(file) === undefined)
    problems.push(`SANDWIRE_SETTINGS is "${file}": there is no such file, or this user may not see it`)
  return file
}

/** What is somebody else's is not for us to keep keys in, even where we could. */
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

/** Finds the installation that flags and environment name. */
export function validatePaths(flags: PathFlags, context: ConfigurationContext): Validated<InstallationPaths> {
  const problems: string[] = []
  const value = validatePathsInto(flags, context, problems)
  return problems.length === 0 ? { isOk: true, value } : { isOk: false, problems }
}

/** Judges everything `up` is told, and names all problems at once. */
export function validateConfiguration(
  flags: UpFlags,
  context: ConfigurationContext,
): Validated<Configuration> {
  const problems: string[] = []
  const place = validatePathsInto(flags, context, problems)
  rejectForeignFolder(place, context, problems)
  const port = validatePort(flags, context.env, problems)
  const settings = validateSettingsFile(
    validateSettingsPath(place, context, problems),
    context.readFile,
    problems,
  )
  const identity = validateIdentity(context, settings.issuers, problems)
  const reach = validateListenSettings({ ...context, hasIdentity: hasIdentity(identity) }, problems)
  const isolation = validateIsolation(context.env, hasIdentity(identity) || reach.mode === 'open', problems)
  const containers = validateContainers(
    context.env,
    { hasWorkspace: place.workspace !== undefined },
    problems,
  )
  if (reach.mode === 'open') refuseLoopbackIssuers(identity, problems)
  if (place.workspace !== undefined && reach.mode === 'open')
    problems.push(
      'A served folder is for this machine’s user alone: leave out --workspace and WORKSPACE_MODE, or serve loopback only',
    )
  if (problems.length > 0) return { isOk: false, problems }
  const { passed } = settings
  return {
    isOk: true,
    value: {
      ...place,
      ...identity,
      ...reach,
      port,
      passed,
      ...(containers === undefined ? isolation && { isolation } : { containers }),
    },
  }
}
