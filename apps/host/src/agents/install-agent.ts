import { chmodSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { SandwireError, schema } from '@sandwire/protocol'
import { temporaryName } from '../data/private-file.ts'
import { ensureFolder } from '../isolation/sandbox-folders.ts'
import { type ProgramPath, useVersion, versionFolder } from './agents-folder.ts'
import { AGENT_PROGRAMS, type AgentPackage, platformOf } from './catalog.ts'

/** Far more than any program of an agent. */
const MAX_PACKAGE_BYTES = 1024 ** 3
/** Without a byte received. */
const STALL_MS = 60_000
const VERSION = /^[0-9][0-9A-Za-z.+-]{0,63}$/

const distSchema = schema.record({
  tarball: schema.text(2048, /^https?:\/\//),
  integrity: schema.text(256, /^sha512-[A-Za-z0-9+/=]+$/),
})

/** The part of a package's metadata that is used. */
function decodeDist(value: unknown): schema.Decoded<typeof distSchema> | undefined {
  const { dist } = (typeof value === 'object' && value !== null ? value : {}) as { dist?: unknown }
  const { tarball, integrity } = (typeof dist === 'object' && dist !== null ? dist : {}) as Readonly<
    Record<string, unknown>
  >
  return distSchema.decode({ tarball, integrity })
}

export interface InstallOptions {
  /** Folder of agents' programs. */
  readonly folder: string
  readonly name: string
  /** Absent: the pinned one. */
  readonly version?: string
  /** Base URL of the npm registry. */
  readonly registry: string
  /** Called as bytes are received; `totalBytes` is 0 while it is not known. */
  readonly onProgress: (receivedBytes: number, totalBytes: number) => void
  readonly hasMusl?: boolean
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Replaces the catalog in tests. */
  readonly programs?: typeof AGENT_PROGRAMS
}

function failed(name: string, problem: string, cause?: unknown): SandwireError {
  return new SandwireError('agent_not_configured', `Cannot install agent "${name}": ${problem}`, { cause })
}

/** What to install; throws for what is not known. */
export function findProgram({
  name,
  version,
  hasMusl = false,
  programs = AGENT_PROGRAMS,
}: Pick<InstallOptions, 'name' | 'version' | 'hasMusl' | 'programs'>): ProgramPath & {
  readonly package: AgentPackage
  /** The executable's path in the package. */
  readonly member: string
  readonly isPinned: boolean
} {
  const program = Object.hasOwn(programs, name) ? programs[name] : undefined
  if (program === undefined)
    throw failed(name, `no such agent; known ones are ${Object.keys(programs).join(', ')}`)
  const platform = platformOf(hasMusl)
  const found = program.packages[platform]
  if (found === undefined) throw failed(name, `it is not available for ${platform}`)
  if (version !== undefined && !VERSION.test(version)) throw failed(name, `"${version}" is not a version`)
  return {
    name,
    version: version ?? program.version,
    file: path.basename(program.file),
    member: program.file,
    package: found,
    isPinned: version === undefined || version === program.version,
  }
}

async function download(
  url: string,
  file: string,
  { name, onProgress, fetch: get = fetch }: InstallOptions,
): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha512')
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), STALL_MS)
  const fd = openSync(file, 'wx', 0o600)
  try {
    const response = await get(url, { signal: controller.signal })
    if (!response.ok || response.body === null)
      throw failed(name, `the registry responded with ${response.status}`)
    const totalBytes = Number(response.headers.get('content-length') ?? 0)
    let receivedBytes = 0
    for await (const chunk of response.body as ReadableStream<Uint8Array>) {
      timer.refresh()
      receivedBytes += chunk.byteLength
      if (receivedBytes > MAX_PACKAGE_BYTES) throw failed(name, 'the package is too large')
      hasher.update(chunk)
      writeSync(fd, chunk)
      onProgress(receivedBytes, totalBytes)
    }
    return `sha512-${hasher.digest('base64')}`
  } finally {
    clearTimeout(timer)
    closeSync(fd)
  }
}

/** Tarball and integrity of a version, as the registry states them. */
async function readManifest(
  packageName: string,
  version: string,
  { name, registry, fetch: get = fetch }: InstallOptions,
): Promise<{ readonly tarball: string; readonly integrity: string }> {
  const url = `${registry.replace(/\/+$/, '')}/${packageName.replace('/', '%2f')}/${version}`
  const response = await get(url, { signal: AbortSignal.timeout(STALL_MS) })
  if (response.status === 404) throw failed(name, `the registry has no version ${version}`)
  const manifest = response.ok ? decodeDist(await response.json()) : undefined
  if (manifest === undefined) throw failed(name, `the registry responded with ${response.status}`)
  return manifest
}

/** Unpacks the executable alone. Nothing of the package is run. */
async function unpack(archive: string, folder: string, file: string, name: string): Promise<void> {
  const member = `package/${file}`
  const options = ['--no-same-owner', `--strip-components=${member.split('/').length - 1}`, '-C', folder]
  const tar = Bun.spawn(['tar', '-xzf', archive, ...options, member], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  if ((await tar.exited) !== 0) throw failed(name, 'the package cannot be unpacked')
  chmodSync(path.join(folder, path.basename(file)), 0o755)
}

/**
 * Fetches the program of an agent from the npm registry, checks its integrity, and lets runs use it. No script of the package is
 * run. Throws `agent_not_configured` with the reason.
 */
export async function installAgent(options: InstallOptions): Promise<ProgramPath> {
  const { folder, name } = options
  const program = findProgram(options)
  const { version, file } = program
  const target = versionFolder(folder, program)
  ensureFolder(path.dirname(target), 0o755)
  if (!existsSync(path.join(target, file))) {
    const work = temporaryName(target)
    rmSync(work, { recursive: true, force: true })
    mkdirSync(work, { mode: 0o755 })
    try {
      const manifest = await readManifest(program.package.name, version, options)
      const archive = path.join(work, 'package.tgz')
      const integrity = await download(manifest.tarball, archive, options)
      const expected = program.isPinned ? program.package.integrity : manifest.integrity
      if (integrity !== expected) throw failed(name, `version ${version} has not the expected content`)
      await unpack(archive, work, program.member, name)
      rmSync(archive)
      chmodSync(work, 0o755)
      rmSync(target, { recursive: true, force: true })
      renameSync(work, target)
    } catch (error) {
      if (error instanceof SandwireError) throw error
      throw failed(name, 'the npm registry cannot be reached', error)
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  }
  useVersion(folder, { name, version, file })
  return { name, version, file }
}
