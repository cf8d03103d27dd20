import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { type ErrorCode, SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import { HELP, parseArguments, type PlaceFlags, type UpFlags } from './arguments.ts'
import { examine } from './commands/doctor.ts'
import { askSignInLink } from './commands/sign-in.ts'
import { up, type UpOptions } from './commands/up.ts'
import {
  type Configuration,
  judgeConfiguration,
  type Judged,
  judgePlace,
  type Surroundings,
} from './configuration.ts'
import { findFile, findFolderObstacle } from './data/folder-problem.ts'
import { describeCause } from './log.ts'
import { findOwnPlaces } from './own-paths.ts'
import { readOperatorFile, readSecretFile } from './settings/input.ts'
import { forgetSecrets } from './settings/secrets.ts'

/** Exit codes: wrong usage or configuration, and everything else that keeps it from running. */
const WRONG_USAGE = 2
const FAILED = 1

/** Errors of a start that are of the configuration: a place that cannot be used, or what was found in it. */
const OF_CONFIGURATION: ReadonlySet<ErrorCode> = new Set(['forbidden', 'bad_request'])

/** A key reaches this process twice under npm, which hands on what the terminal gave to both: that is one order. */
const SAME_ORDER_MS = 500

const tell = (line: string): void => void process.stderr.write(`${line}\n`)
const print = (text: string): void => void process.stdout.write(text)
// Whoever reads may be gone, or its disk full; what runs is ended in order all the same.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

/** The path with links resolved as far as it exists. */
function realPath(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    // Not there yet: its parent may be.
    const parent = path.dirname(file)
    return parent === file ? file : path.join(realPath(parent), path.basename(file))
  }
}

const asker = {
  env: process.env,
  home: process.env['HOME'] ?? homedir(),
  uid: process.getuid?.() ?? 0,
}

function findCwd(): string {
  try {
    return process.cwd()
  } catch {
    return fail(WRONG_USAGE, [
      'sandwire: Cannot start here: the current folder is gone',
      'hint: change to another folder',
    ])
  }
}

const surroundings: Surroundings = {
  ...asker,
  cwd: findCwd(),
  realPath,
  isFolder: (file) => findFile(file)?.isDirectory() === true,
  folderObstacle: findFolderObstacle,
  ownerOf: (file) => findFile(file)?.uid,
  ownPlaces: findOwnPlaces(asker),
  readFile: readOperatorFile,
  readSecretFile,
}

function fail(code: number, lines: readonly string[]): never {
  for (const line of lines) tell(line)
  process.exit(code)
}

/** The value, or an end that names every problem. */
function settle<T>(judged: Judged<T>): T {
  if (judged.isOk) return judged.value
  const [first, ...others] = judged.problems
  if (others.length === 0) return fail(WRONG_USAGE, [`sandwire: ${first}`])
  return fail(WRONG_USAGE, [
    `sandwire: ${judged.problems.length} settings are wrong`,
    ...judged.problems.map((problem) => `  ${problem}`),
  ])
}

/** Judges once, and keeps secrets nowhere but in the result. */
function configure(flags: UpFlags): Configuration {
  const configuration = settle(judgeConfiguration(flags, surroundings))
  forgetSecrets(process.env)
  return configuration
}

async function runUp(flags: UpFlags): Promise<void> {
  const configuration = configure(flags)
  const options: UpOptions = { configuration, flags, env: process.env, tell, print }
  const asked = Promise.withResolvers<void>()
  let isForced = (): void => process.exit(FAILED)
  let askedAtMs: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      const nowMs = performance.now()
      if (askedAtMs !== undefined && nowMs - askedAtMs >= SAME_ORDER_MS) isForced()
      askedAtMs ??= nowMs
      asked.resolve()
    })
  const running = await up(options)
  isForced = () => {
    running.abandon()
    process.exit(FAILED)
  }
  await asked.promise
  if (!flags.isQuiet) tell(flags.keepsSandboxes ? 'Stopping …' : 'Stopping, with every sandbox …')
  await running.stop()
  if (!flags.isQuiet) tell('Stopped')
}

async function runDoctor(flags: PlaceFlags): Promise<void> {
  const nothing = { isQuiet: false, isNewToken: false, keepsSandboxes: false }
  const configuration = configure({ ...flags, ...nothing })
  if (!(await examine({ configuration, env: process.env, tell, print }))) process.exit(FAILED)
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
      return print(`${await askSignInLink(settle(judgePlace(parsed.flags, surroundings)))}\n`)
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
