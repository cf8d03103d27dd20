import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packReact } from '../../../scripts/react-package.ts'

const ROOT = resolve(import.meta.dir, '../../..')
/** What a package manager would fetch beside the package, or the project has anyway. */
const BESIDE = ['@xterm', '@types', 'react', 'react-dom', 'csstype', 'scheduler', 'undici-types']
/** As strict as a new Vite project of TypeScript and React, and stricter. */
const STRICT = {
  target: 'ES2022',
  module: 'ESNext',
  moduleResolution: 'bundler',
  jsx: 'react-jsx',
  lib: ['ES2022', 'DOM', 'DOM.Iterable'],
  types: ['node'],
  noEmit: true,
  strict: true,
  skipLibCheck: false,
  verbatimModuleSyntax: true,
  moduleDetection: 'force',
  isolatedModules: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  erasableSyntaxOnly: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noPropertyAccessFromIndexSignature: true,
  noImplicitReturns: true,
  noImplicitOverride: true,
}

/** The files of a README: each block of TypeScript begins with its name. */
function readExamples(readme: string): ReadonlyMap<string, string> {
  const blocks = readme.matchAll(/^```tsx?\n\/\/ (\S+\.tsx?)\n(.*?)^```$/gms)
  return new Map([...blocks].map(([, name = '', text = '']) => [name, text]))
}

/** Somebody else's project: what a README says, and the packed package installed in it. */
export class PageProject implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandwire-page-'))
  readonly examples = readExamples(readFileSync(join(ROOT, 'packages/react/README.md'), 'utf8'))

  constructor() {
    const installed = join(this.folder, 'node_modules/@sandwire/react')
    mkdirSync(installed, { recursive: true })
    const packed = packReact(this.folder)
    const tar = Bun.spawnSync(['tar', 'xzf', packed, '--strip-components=1', '-C', installed])
    if (!tar.success) throw new Error(`Cannot unpack ${packed}: ${tar.stderr.toString()}`)
    for (const name of BESIDE)
      symlinkSync(join(ROOT, 'node_modules', name), join(this.folder, 'node_modules', name))
    this.write('package.json', '{ "type": "module" }')
    // As `vite/client` says it.
    this.write('style.d.ts', "declare module '*.css' {}\n")
    this.write('tsconfig.json', JSON.stringify({ compilerOptions: STRICT, include: ['*.ts', '*.tsx'] }))
    for (const [name, text] of this.examples) this.write(name, text)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text)
  }

  /** What the compiler has to say; nothing when all is well. */
  check(): string {
    const { stdout } = Bun.spawnSync([join(ROOT, 'node_modules/.bin/tsc'), '-p', this.folder])
    return stdout.toString()
  }

  /** The script and the style sheet of a page, by their endings. */
  async bundle(
    entry: string,
    define: Readonly<Record<string, string>> = {},
  ): Promise<ReadonlyMap<string, Blob>> {
    const built = await Bun.build({
      entrypoints: [join(this.folder, entry)],
      target: 'browser',
      define: { 'process.env.NODE_ENV': '"production"', ...define },
    })
    return new Map(built.outputs.map((output) => [output.path.replace(/^.*\.(?=\w+$)/, ''), output]))
  }
}
