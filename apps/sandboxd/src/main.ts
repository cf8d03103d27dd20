import { lstatSync, readFileSync, realpathSync, rmSync, statSync, unlinkSync } from 'node:fs'
import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { ownAccount } from './account.ts'
import { HELP, parseArguments } from './arguments.ts'
import { createBaseEnv } from './base-env.ts'
import { createLog } from './log.ts'
import { forbidDumps } from './non-dumpable.ts'
import { createStartProcess } from './processes/start-process.ts'
import { listen } from './server.ts'
import { ScreenModel } from './sessions/screen-model.ts'
import { ScreenRenderer } from './sessions/screen-renderer.ts'
import { SessionRegistry } from './sessions/session-registry.ts'
import type { Settings } from './settings.ts'

/** Shortest secret that is taken; 16 characters of hex are 64 bits. */
const MIN_SECRET_CHARS = 16

function fail(message: string, hint: string): never {
  process.stderr.write(`sandboxd: ${message}\nhint: ${hint}\n`)
  process.exit(2)
}

/** Reads the secret and removes its file, so that nothing in the sandbox can read it again. */
function takeSecret(file: string): string {
  let secret: string
  try {
    secret = readFileSync(file, 'utf8').trim()
    unlinkSync(file)
  } catch (error) {
    return fail(
      `cannot take the secret from "${file}": ${error instanceof Error && 'code' in error ? String(error.code) : 'failed'}`,
      'the file must be readable and removable',
    )
  }
  if (secret.length < MIN_SECRET_CHARS || !/^[\x21-\x7e]+$/.test(secret))
    fail('the secret is too short or not printable', `use at least ${MIN_SECRET_CHARS} random characters`)
  return secret
}

function findWorkspace(directory: string): string {
  try {
    const real = realpathSync(directory)
    if (statSync(real).isDirectory()) return real
  } catch {
    // Told below, like a file in its place.
  }
  return fail(
    `cannot use workspace "${directory}": no such directory`,
    'give an existing folder with --workspace DIR',
  )
}

/** A socket left by an earlier run makes way; anything else is not ours to remove. */
function removeOldSocket(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket())
    fail(`cannot listen on "${path}": it exists and is not a socket`, 'choose another path')
  unlinkSync(path)
}

function randomText(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}

function main(): void {
  const parsed = parseArguments(process.argv.slice(2))
  if (parsed.kind === 'help') {
    process.stdout.write(HELP)
    return
  }
  if (parsed.kind === 'version') {
    process.stdout.write(`sandboxd ${SOFTWARE_VERSION}\n`)
    return
  }
  if (parsed.kind === 'wrong') fail(parsed.message, 'sandboxd --help')
  const log = createLog(
    (line) => process.stderr.write(line),
    () => new Date(),
  )
  if (!forbidDumps())
    log.warn('dumpable', { message: 'The kernel does not let this process hide its memory' })
  const workspace = findWorkspace(parsed.workspace)
  const secret = parsed.secretFile === undefined ? null : takeSecret(parsed.secretFile)
  if (secret === null) log.warn('insecure', { message: 'Anybody who reaches this address can run commands' })
  const baseEnv = createBaseEnv(process.env, ownAccount())
  const settings: Settings = {
    version: SOFTWARE_VERSION,
    workspace,
    baseEnv,
    shell: [parsed.shell ?? baseEnv['SHELL'] ?? '/bin/sh', '-l'],
    secret,
    origins: parsed.origins,
    hosts: parsed.hosts,
    maxSessions: parsed.maxSessions,
    requestsPerSecond: parsed.requestsPerSecond,
    maxMessageBytes: parsed.maxMessageBytes,
    session: parsed.session,
  }
  const now = (): number => performance.now()
  const renderer = new ScreenRenderer(
    () => new Worker(new URL('./sessions/screen-worker.ts', import.meta.url).href),
  )
  const registry = new SessionRegistry(
    settings,
    {
      startProcess: createStartProcess(),
      createScreen: (session) => new ScreenModel(session, renderer),
      log,
      now,
    },
    { mintId: () => randomText(16), wallClock: Date.now },
  )
  const { listen: address } = parsed
  if (address.kind === 'unix') removeOldSocket(address.path)
  const server = listen(address, {
    settings,
    registry,
    log,
    mintRequestId: () => randomText(8),
    now,
    epochMs: performance.timeOrigin,
  })
  const url =
    address.kind === 'unix'
      ? `unix:${address.path}`
      : `http://${address.hostname.includes(':') ? `[${address.hostname}]` : address.hostname}:${server.port}`
  process.stdout.write(`${JSON.stringify({ type: 'ready', url, version: SOFTWARE_VERSION })}\n`)

  let isStopping = false
  const stop = async (): Promise<void> => {
    if (isStopping) return
    isStopping = true
    log.info('stopping', { sessions: registry.size })
    await registry.shutDown()
    await server.stop(true)
    if (address.kind === 'unix') rmSync(address.path, { force: true })
    process.exit(0)
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
}

main()
