import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { type ErrorCode, SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import { HELP, parseArguments, type PathFlags, type UpFlags } from './arguments.ts'
import { installAgentCommand } from './commands/agents.ts'
import { backUp, restore } from './commands/backup.ts'
import { doctor } from './commands/doctor.ts'
import { requestSignInLink } from './commands/sign-in.ts'
import { up, type UpOptions } from './commands/up.ts'
import {
  type Configuration,
  validateConfiguration,
  type Validated,
  validatePaths,
  type ConfigurationContext,
} from './configuration.ts'
import { openDataFolder } from './data/data-folder.ts'
import { findFile, findFolderProblem } from './data/folder-problem.ts'
import { describeCause } from './log.ts'
import { findOwnPaths } from './own-paths.ts'
import { readOperatorFile, readSecretFile } from './settings/input.ts'
import { removeCredentials } from './settings/credentials.ts'
import { removeSecrets } from './settings/secrets.ts'

/** Exit codes: wrong usage or configuration, and any other failure. */
const WRONG_USAGE = 2
const FAILED = 1

/** Error codes that mean a configuration problem, such as an unusable data folder. */
const OF_CONFIGURATION: ReadonlySet<ErrorCode> = new Set(['forbidden', 'bad_request'])

/** npm forwards a SIGINT that the terminal has already sent to this process: both count as one. */
const SAME_ORDER_MS = 500

const notify = (line: string): void => void process.stderr.write(`${line}\n`)
const print = (text: string): void => void process.stdout.write(text)
// Output may be closed or its disk full; shutdown must still be orderly.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

/** Resolves symbolic links as far as the path exists. */
function realPath(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    // Missing: resolve its parent.
    const parent = path.dirname(file)
    return parent === file ? file : path.join(realPath(parent), path.basename(file))
  }
}

const caller = {
  env: process.env,
  home: process.env['HOME'] ?? homedir(),
  uid: process.getuid?.() ?? 0,
}

function findCwd(): string {
  try {
    return process.cwd()
  } catch {
    return fail(WRONG_USAGE, [
      'sandwire: Cannot start here: the current folder no longer exists',
      'hint: change to another folder',
    ])
  }
}

const context: ConfigurationContext = {
  ...caller,
  cwd: findCwd(),
  realPath,
  isFolder: (file) => findFile(file)?.isDirectory() === true,
  folderProblem: findFolderProblem,
  ownerOf: (file) => findFile(file)?.uid,
  ownPaths: findOwnPaths(caller),
  readFile: readOperatorFile,
  readSecretFile,
}

function fail(code: number, lines: readonly string[]): never {
  for (const line of lines) notify(line)
  process.exit(code)
}

/** The value; exits with all problems otherwise. */
function settle<T>(validated: Validated<T>): T {
  if (validated.isOk) return validated.value
  const [first, ...others] = validated.problems
  if (others.length === 0) return fail(WRONG_USAGE, [`sandwire: ${first}`])
  return fail(WRONG_USAGE, [
    `sandwire: ${validated.problems.length} configuration problems`,
    ...validated.problems.map((problem) => `  ${problem}`),
  ])
}

/** Validates once, then removes secrets from the environment. */
function configure(flags: UpFlags): Configuration {
  const configuration = settle(validateConfiguration(flags, context))
  removeSecrets(process.env)
  removeCredentials(process.env, configuration)
  return configuration
}

async function runUp(flags: UpFlags): Promise<void> {
  const configuration = configure(flags)
  const options: UpOptions = { configuration, flags, env: process.env, notify, print }
  const stopRequested = Promise.withResolvers<void>()
  let isForced = (): void => process.exit(FAILED)
  let askedAtMs: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      const nowMs = performance.now()
      if (askedAtMs !== undefined && nowMs - askedAtMs >= SAME_ORDER_MS) isForced()
      askedAtMs ??= nowMs
      stopRequested.resolve()
    })
  const running = await up(options)
  isForced = () => {
    running.abandon()
    process.exit(FAILED)
  }
  await stopRequested.promise
  if (!flags.isQuiet) notify(flags.keepsSandboxes ? 'Stopping …' : 'Stopping sandboxes …')
  await running.stop()
  if (!flags.isQuiet) notify('Stopped')
}

async function runDoctor(flags: PathFlags): Promise<void> {
  const nothing = { isQuiet: false, isNewToken: false, keepsSandboxes: false, acceptsMissing: false }
  const configuration = configure({ ...flags, ...nothing })
  if (!(await doctor({ configuration, env: process.env, notify, print }))) process.exit(FAILED)
}

function dataFolderOf(flags: PathFlags): string {
  return settle(validatePaths(flags, context)).dataFolder
}

async function main(): Promise<void> {
  const parsed = parseArguments(process.argv.slice(2))
  switch (parsed.kind) {
    case 'help':
      return print(HELP)
    case 'version':
      return print(`sandwire ${SOFTWARE_VERSION}\n`)
    case 'wrong':
      return fail(WRONG_USAGE, [`sandwire: ${parsed.message}`, 'hint: npx sandwire --help'])
    case 'up':
      return runUp(parsed.flags)
    case 'signin':
      return print(`${await requestSignInLink(settle(validatePaths(parsed.flags, context)))}\n`)
    case 'agents': {
      const { dataFolder } = settle(validatePaths(parsed.flags, context))
      const progress = process.stderr.isTTY ? (text: string) => void process.stderr.write(text) : undefined
      openDataFolder(dataFolder)
      return print(`${await installAgentCommand(parsed, dataFolder, { env: process.env, progress })}\n`)
    }
    case 'backup':
      return print(await backUp(dataFolderOf(parsed.flags), parsed.file, context.cwd))
    case 'restore':
      return print(await restore(parsed.file, dataFolderOf(parsed.flags), context.cwd))
    case 'doctor':
      return runDoctor(parsed.flags)
  }
}

try {
  await main()
  process.exit(0)
} catch (error) {
  const { code, message, cause } = SandwireError.from(error)
  const exitCode = OF_CONFIGURATION.has(code) ? WRONG_USAGE : FAILED
  fail(exitCode, [`sandwire: ${message}`, ...(cause === undefined ? [] : [`  ${describeCause(cause)}`])])
}
