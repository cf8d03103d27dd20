import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { SandwireError } from '@sandwire/protocol'
import { hasRecordedContent, moveDamaged, recordContent } from '../data/content-record.ts'
import { temporaryName } from '../data/private-file.ts'

/** Inputs of the page's build, relative to the repository. */
const SOURCES = [
  'apps/web/index.html',
  'apps/web/vite.config.ts',
  'apps/web/src',
  'packages/react/src',
  'packages/client/src',
  'packages/protocol/src',
  'packages/screen/src',
  'packages/bytes/src',
  'package-lock.json',
  'apps/host/src/control/workbench-files.ts',
]
const PREFIX = 'workbench-'
/** Older unused builds are removed. */
const MAX_UNUSED_MS = 7 * 24 * 60 * 60 * 1000

function listFiles(file: string): readonly string[] {
  if (!statSync(file).isDirectory()) return [file]
  return readdirSync(file, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.includes('.test.'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .toSorted()
}

/** Hash of the inputs. */
function hashSources(root: string): string {
  const hash = createHash('sha256')
  for (const file of SOURCES.flatMap((source) => listFiles(path.join(root, source))))
    hash
      .update(`${path.relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0')
  return hash.digest('hex').slice(0, 16)
}

async function build(root: string, folder: string): Promise<void> {
  // Loaded on demand, because it is slow.
  const { build: buildPage } = await import('vite')
  const site = path.join(root, 'apps/web')
  const before = process.env['NODE_ENV']
  try {
    await buildPage({
      root: site,
      configFile: path.join(site, 'vite.config.ts'),
      // Imported directly: Vite would otherwise write a copy into node_modules, which may be read-only.
      configLoader: 'native',
      logLevel: 'silent',
      build: { outDir: folder, emptyOutDir: true },
    })
  } catch (cause) {
    throw new SandwireError('internal', 'Cannot build the workbench', { cause })
  } finally {
    // NODE_ENV applies to the page's build only.
    if (before === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = before
  }
}

/** Removes old builds. */
function removeOld(cache: string, current: string): void {
  for (const name of readdirSync(cache)) {
    const build = path.join(cache, name)
    if (!name.startsWith(PREFIX) || name.startsWith(current)) continue
    if (Date.now() - statSync(build).mtimeMs > MAX_UNUSED_MS) rmSync(build, { recursive: true, force: true })
  }
}

/** Folder of the current build; undefined when not built. */
export function findWorkbench(root: string, cache: string): string | undefined {
  const folder = path.join(cache, `${PREFIX}${hashSources(root)}`)
  return hasRecordedContent(folder) ? folder : undefined
}

/** Folder of the current build, built if needed. Safe for concurrent processes. */
export async function prepareWorkbench(
  root: string,
  cache: string,
  notify: (line: string) => void = () => undefined,
): Promise<string> {
  const name = `${PREFIX}${hashSources(root)}`
  const folder = path.join(cache, name)
  if (hasRecordedContent(folder)) return folder
  moveDamaged(folder)
  notify('Building the workbench …')
  const fresh = temporaryName(folder)
  try {
    await build(root, fresh)
    await compressFiles(fresh)
    recordContent(folder, fresh)
    renameSync(fresh, folder)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    // Built concurrently.
    if (!hasRecordedContent(folder)) throw error
  }
  removeOld(cache, name)
  return folder
}

/** Extensions of compressible files. */
const TEXTS = ['.html', '.js', '.css', '.svg']
/** Quality 10 would slow the first start by seconds, for 5 % smaller files. */
const BROTLI_QUALITY = 9

/** Suffix of each content coding, as control requests it. */
const CODERS = {
  '.br': (bytes: Uint8Array) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  '.gz': (bytes: Uint8Array) => promisify(gzip)(bytes, { level: 9 }),
} as const

async function compressFile(file: string): Promise<void> {
  const bytes = await readFile(file)
  for (const [suffix, encode] of Object.entries(CODERS)) {
    const coded = await encode(bytes)
    if (coded.length < bytes.length) await writeFile(`${file}${suffix}`, coded)
  }
}

/** Writes compressed copies of all text files, so that requests need no compression. */
async function compressFiles(folder: string): Promise<void> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((name) => TEXTS.includes(path.extname(name))))
    await compressFile(path.join(folder, file))
}
