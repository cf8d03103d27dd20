import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packReact } from '../../../scripts/react-package.ts'

const ROOT = resolve(import.meta.dir, '../../..')
/** Packages that a package manager would install beside it. */
const BESIDE = ['@xterm', '@types', 'react', 'react-dom', 'csstype', 'scheduler', 'undici-types']
/** At least as strict as a new Vite project. */
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

/** The TypeScript blocks of a README, each starting with a file name. */
function readExamples(readme: string): ReadonlyMap<string, string> {
  const blocks = readme.matchAll(/^```tsx?\n\/\/ (\S+\.tsx?)\n(.*?)^```$/gms)
  return new Map([...blocks].map(([, name = '', text = '']) => [name, text]))
}

/** A third-party project made of a README, with the packed package installed. */
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
    // As in `vite/client`.
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

  /** Compiler output; empty on success. */
  check(): string {
    const { stdout } = Bun.spawnSync([join(ROOT, 'node_modules/.bin/tsc'), '-p', this.folder])
    return stdout.toString()
  }

  /** Script and style sheet of a page, by extension. */
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
