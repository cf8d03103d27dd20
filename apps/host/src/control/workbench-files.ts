import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { SandwireError } from '@sandwire/protocol'
import { temporaryName } from '../data/private-file.ts'

/** What the page is made of, and what makes of it what is served, from the root of the project. */
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
/** Builds that nobody has used for so long are removed. */
const MAX_UNUSED_MS = 7 * 24 * 60 * 60 * 1000

function listFiles(place: string): readonly string[] {
  if (!statSync(place).isDirectory()) return [place]
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.includes('.test.'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .toSorted()
}

/** Names a state of the sources. */
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
  // Slow to load, and not needed when nothing has changed.
  const { build: buildPage } = await import('vite')
  const site = path.join(root, 'apps/web')
  const before = process.env['NODE_ENV']
  try {
    await buildPage({
      root: site,
      configFile: path.join(site, 'vite.config.ts'),
      // Imported as it is: otherwise Vite writes a copy of it among the packages, which may be somebody else's.
      configLoader: 'native',
      logLevel: 'silent',
      build: { outDir: folder, emptyOutDir: true },
    })
  } catch (cause) {
    throw new SandwireError('internal', 'Cannot build the workbench', { cause })
  } finally {
    // The page's configuration says what it is built for, and that is true of the page alone.
    if (before === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = before
  }
}

/** Removes what earlier versions left. */
function removeOld(cache: string, current: string): void {
  for (const name of readdirSync(cache)) {
    const place = path.join(cache, name)
    if (!name.startsWith(PREFIX) || name === current) continue
    if (Date.now() - statSync(place).mtimeMs > MAX_UNUSED_MS) rmSync(place, { recursive: true, force: true })
  }
}

/** Folder with the files of the workbench as the sources are now; undefined: it is not built. */
export function findWorkbench(root: string, cache: string): string | undefined {
  const folder = path.join(cache, `${PREFIX}${hashSources(root)}`)
  return existsSync(path.join(folder, 'index.html')) ? folder : undefined
}

/** Folder with the files of the workbench, built when its sources have changed. Several may ask at once. */
export async function prepareWorkbench(
  root: string,
  cache: string,
  notify: (line: string) => void = () => undefined,
): Promise<string> {
  const name = `${PREFIX}${hashSources(root)}`
  const folder = path.join(cache, name)
  if (existsSync(path.join(folder, 'index.html'))) return folder
  notify('Building the workbench …')
  const fresh = temporaryName(folder)
  try {
    await build(root, fresh)
    await compressFiles(fresh)
    renameSync(fresh, folder)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    // Somebody else built the same meanwhile.
    if (!existsSync(path.join(folder, 'index.html'))) throw error
  }
  removeOld(cache, name)
  return folder
}

/** What is text, and so smaller in a coding. */
const TEXTS = ['.html', '.js', '.css', '.svg']
/** The next one would make the first start seconds longer, for a twentieth less. */
const BROTLI_QUALITY = 9

/** What is behind the name of a file in a coding, as control asks for it. */
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

/** Puts every text of a folder beside itself in the codings that browsers take, so that nobody makes them for each request. */
export async function compressFiles(folder: string): Promise<void> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((name) => TEXTS.includes(path.extname(name))))
    await compressFile(path.join(folder, file))
}
