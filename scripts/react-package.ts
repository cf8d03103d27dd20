import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const ROOT = path.dirname(import.meta.dir)
const PACKAGES = path.join(ROOT, 'packages')
const MANIFEST = path.join(PACKAGES, 'react', 'package.json')
/** What goes along inside the package, by the name that sources import it by; everything else is a dependency. */
const INSIDE: Readonly<Record<string, string>> = {
  '@sandwire/bytes': 'bytes/src/index.ts',
  '@sandwire/client': 'client/src/index.ts',
  '@sandwire/protocol': 'protocol/src/index.ts',
  '@sandwire/screen': 'screen/src/index.ts',
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly exports: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

function run(argv: readonly string[], cwd: string): string {
  const { success, stdout, stderr } = Bun.spawnSync([...argv], { cwd, stdout: 'pipe', stderr: 'pipe' })
  if (!success)
    throw new Error(`Cannot run ${argv.slice(0, 2).join(' ')}:\n${stdout.toString()}${stderr.toString()}`)
  return stdout.toString()
}

const toScript = (source: string): string => source.replace(/\.tsx?$/, '.js')

/** Compiles the sources that the entries need to JavaScript and declarations, in one folder per package. */
function compile(entries: readonly string[], folder: string): void {
  const settings = {
    extends: path.join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      rootDir: PACKAGES,
      outDir: folder,
      target: 'ES2023',
      module: 'ESNext',
      lib: ['ESNext', 'DOM', 'DOM.Iterable'],
      types: [],
      noUncheckedSideEffectImports: false,
      typeRoots: [path.join(ROOT, 'node_modules', '@types')],
      paths: Object.fromEntries(
        Object.entries(INSIDE).map(([name, file]) => [name, [path.join(PACKAGES, file)]]),
      ),
    },
    files: entries,
    include: [],
  }
  const file = path.join(folder, 'tsconfig.json')
  writeFileSync(file, JSON.stringify(settings))
  run([path.join(ROOT, 'node_modules', '.bin', 'tsc'), '-p', file], ROOT)
  rmSync(file)
}

/** Names every import as it is called in the package: the compiler leaves names of packages, and in declarations all names, as they are. */
function rename(text: string, from: string, folder: string): string {
  const named = text.replaceAll(/(['"])(@sandwire\/[a-z]+)\1/g, (whole, _, name: string) => {
    const inside = INSIDE[name]
    if (inside === undefined) throw new Error(`Cannot pack ${from}: ${name} does not go along`)
    const relative = path.relative(path.dirname(from), path.join(folder, toScript(inside)))
    return whole.replace(name, relative.startsWith('.') ? relative : `./${relative}`)
  })
  // Style sheets are copied, because the compiler ignores them.
  const typed = from.endsWith('.d.ts') ? named.replaceAll(/^import ['"][^'"]+\.css['"];\n/gm, '') : named
  return typed.replaceAll(/(['"])(\.{1,2}\/[^'"]+)\.tsx?\1/g, '$1$2.js$1')
}

function describePackage({
  name,
  version,
  license,
  exports,
  dependencies,
  peerDependencies,
}: Manifest): object {
  const inPackage = (source: string): string => `./${path.posix.join('react', toScript(source))}`
  return {
    name,
    version,
    license,
    type: 'module',
    description: 'A terminal in a Sandwire sandbox, for pages of your own',
    exports: Object.fromEntries(
      Object.entries(exports).map(([entry, source]) => [
        entry,
        {
          types: inPackage(source).replace(/\.js$/, '.d.ts'),
          default: inPackage(source),
        },
      ]),
    ),
    sideEffects: ['./react/src/terminal.js'],
    dependencies: Object.fromEntries(
      Object.entries(dependencies).filter(([dependency]) => !Object.hasOwn(INSIDE, dependency)),
    ),
    peerDependencies,
    peerDependenciesMeta: { react: { optional: true } },
  }
}

/** Packs `@sandwire/react` and the workspace packages it needs as JavaScript with declarations; returns the tarball's path. */
export function packReact(destination: string): string {
  const manifest = JSON.parse(readFileSync(MANIFEST, 'utf8')) as Manifest
  const folder = mkdtempSync(path.join(tmpdir(), 'sandwire-react-'))
  try {
    compile(
      Object.values(manifest.exports).map((source) => path.join(PACKAGES, 'react', source)),
      folder,
    )
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const file = path.join(entry.parentPath, entry.name)
      if (entry.isFile()) writeFileSync(file, rename(readFileSync(file, 'utf8'), file, folder))
    }
    writeFileSync(
      path.join(folder, 'package.json'),
      `${JSON.stringify(describePackage(manifest), null, 2)}\n`,
    )
    cpSync(path.join(PACKAGES, 'react', 'README.md'), path.join(folder, 'README.md'))
    cpSync(path.join(ROOT, 'LICENSE'), path.join(folder, 'LICENSE'))
    run([process.execPath, 'pm', 'pack', '--quiet', '--destination', destination], folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
  return path.join(destination, `sandwire-react-${manifest.version}.tgz`)
}
