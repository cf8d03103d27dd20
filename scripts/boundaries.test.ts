// Proves that the import and purity rules of .oxlintrc.json fire where they should, and only there.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const imports = 'eslint(no-restricted-imports)'
const globals = 'eslint(no-restricted-globals)'
const properties = 'eslint(no-restricted-properties)'

/** A file with one statement, and the boundary rule it breaks, if any. */
type Row = readonly [file: string, statement: string, rule: string | undefined]

const rows: readonly Row[] = [
  ['packages/protocol/src/a.ts', "import 'node:fs'", imports],
  ['packages/protocol/src/b.ts', "import 'bun'", imports],
  ['packages/protocol/src/c.ts', "import '@sandwire/client'", imports],
  ['packages/protocol/src/d.ts', "import '../../client/src/index.ts'", imports],
  ['packages/protocol/src/e.ts', "export * from 'ws'", imports],
  ['packages/protocol/src/f.ts', "import type { Stats } from 'node:fs'; export type S = Stats", imports],
  ['packages/protocol/src/g.ts', "void import('node:path')", imports],
  ['packages/protocol/src/h.ts', "import './server/x.ts'; import '../y.ts'", undefined],
  ['packages/protocol/src/h.test.ts', "import 'bun:test'; import '@sandwire/testing'", undefined],
  ['packages/protocol/src/i.ts', 'Date.now()', globals],
  ['packages/protocol/src/j.ts', 'new Date()', globals],
  ['packages/protocol/src/k.ts', 'globalThis.setTimeout(() => undefined, 1)', globals],
  ['packages/protocol/src/l.ts', 'process.exit()', globals],
  ['packages/protocol/src/m.ts', "new WebSocket('')", globals],
  ['packages/protocol/src/n.ts', 'crypto.randomUUID()', globals],
  ['packages/protocol/src/o.ts', 'Math.random()', properties],
  ['packages/protocol/src/p.ts', 'export const half = Math.floor(0.5)', undefined],
  ['packages/client/src/a.ts', "import 'node:fs'", imports],
  ['packages/client/src/b.ts', "import 'bun'", imports],
  ['packages/client/src/c.ts', "import '@xterm/headless'", imports],
  ['packages/client/src/d.ts', "import '@sandwire/testing'", imports],
  ['packages/client/src/e.ts', "import '@sandwire/protocol/src/codec.ts'", imports],
  ['packages/client/src/f.ts', "import '../../protocol/src/index.ts'", imports],
  ['packages/client/src/g.ts', "import '@sandwire/protocol'; import './x.ts'; import '../y/z.ts'", undefined],
  ['packages/client/src/h.ts', 'Bun.gc()', globals],
  ['packages/react/src/a.ts', "import '@sandwire/internal-api'", imports],
  ['packages/react/src/b.tsx', "import 'node:fs'", imports],
  ['packages/react/src/c.tsx', "import 'react'; import '@xterm/xterm'; import '@sandwire/client'", undefined],
  ['packages/bytes/src/a.ts', "import '@sandwire/protocol'", imports],
  ['packages/bytes/src/b.ts', "import './x.ts'", undefined],
  ['packages/async/src/a.ts', "import 'node:timers/promises'", imports],
  ['packages/shell-quote/src/a.ts', "import '@sandwire/bytes'", imports],
  ['packages/lock-file/src/a.ts', "import '@sandwire/protocol'", imports],
  ['packages/lock-file/src/b.ts', "import 'node:fs'; import 'bun:ffi'", undefined],
  ['packages/socket-forward/src/a.ts', "import '@sandwire/protocol'", imports],
  ['packages/screen/src/a.ts', "import '@xterm/headless'", imports],
  ['packages/screen/src/b.ts', "import '@sandwire/bytes'; import './x.ts'", undefined],
  ['packages/tar/src/a.ts', "import 'node:fs'", imports],
  ['packages/tar/src/b.ts', "import '@sandwire/protocol'; import './x.ts'", undefined],
  ['packages/operator-settings/src/a.ts', "import '@sandwire/network-policy'", imports],
  ['packages/agent/src/a.ts', "import 'node:fs'", imports],
  ['packages/agent/src/b.ts', 'Date.now()', globals],
  ['packages/agent/src/c.ts', "import '@sandwire/protocol'; import './x.ts'", undefined],
  ['packages/network-policy/src/a.ts', "import 'node:net'", imports],
  ['packages/network-policy/src/b.ts', "import 'ipaddr.js'; import '@sandwire/protocol'", undefined],
  ['packages/internal-api/src/a.ts', "import '@sandwire/client'", imports],
  ['packages/internal-api/src/b.ts', "import 'node:fs'", imports],
  [
    'packages/internal-api/src/c.ts',
    "import '@sandwire/protocol'; import '@sandwire/bytes'; import './x.ts'",
    undefined,
  ],
  ['apps/control/src/a.ts', "import '@sandwire/client'", imports],
  ['apps/control/src/b.ts', "import 'node:fs'", imports],
  ['apps/control/src/c.ts', "import 'hono'; import '@sandwire/internal-api'", undefined],
  ['packages/testing/src/a.ts', "import '@sandwire/protocol'; import 'node:fs'", undefined],
  ['packages/testing/src/b.ts', "import '@sandwire/sandboxd'", imports],
  ['apps/cli/src/a.ts', "import '@sandwire/sandboxd'", imports],
  ['apps/cli/src/b.ts', "import '../../sandboxd/src/main.ts'", imports],
  ['apps/cli/src/c.ts', "import '@sandwire/testing'", imports],
  ['apps/cli/src/d.ts', "import '@sandwire/client/src/index.ts'", imports],
  ['apps/cli/src/h.ts', "import '@sandwire/protocol/plain'", undefined],
  ['apps/cli/src/e.ts', "import 'node:fs'; import '@sandwire/client'; import './x.ts'", undefined],
  ['apps/cli/src/f.test.ts', "import '@sandwire/testing'", undefined],
  ['apps/cli/src/g.test.ts', "import '../../sandboxd/src/main.ts'", imports],
  ['apps/cli/test/a.test.ts', "import '../src/main.ts'", undefined],
  ['apps/sandboxd/src/a.ts', "import '@sandwire/cli'", imports],
  ['test/e2e/a.test.ts', "import '@sandwire/testing'; import '../../apps/sandboxd/src/main.ts'", undefined],
  ['test/e2e/b.ts', "import '../../packages/protocol/src/codec.ts'", imports],
  ['bench/a.ts', "import '@sandwire/testing'; import '@sandwire/protocol/plain'", undefined],
  ['bench/b.ts', "import '@sandwire/protocol/src/codec.ts'", imports],
  ['test/e2e/c.ts', "import '@sandwire/testing/issuer'", undefined],
  ['scripts/a.ts', "import '@sandwire/testing'", imports],
  ['deploy/a.ts', "import '../apps/control/src/index.ts'; import '@sandwire/client'", undefined],
  ['deploy/b.ts', "import '../packages/client/src/index.ts'", imports],
  ['deploy/c.ts', "import '@sandwire/testing'", imports],
]

type Diagnostics = { readonly diagnostics: readonly { readonly code?: string; readonly filename: string }[] }

const root = path.dirname(import.meta.dir)
const tree = mkdtempSync(path.join(tmpdir(), 'boundaries-'))
const broken = new Map<string, Set<string>>()

beforeAll(() => {
  for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json']) {
    cpSync(path.join(root, name), path.join(tree, name))
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(tree, 'node_modules'))
  for (const [file, statement] of rows) {
    mkdirSync(path.dirname(path.join(tree, file)), { recursive: true })
    writeFileSync(path.join(tree, file), `${statement}\n`)
  }
  const oxlint = path.join(root, 'node_modules', '.bin', 'oxlint')
  const folders = ['packages', 'apps', 'test', 'bench', 'scripts', 'deploy']
  const result = Bun.spawnSync([oxlint, '--format=json', ...folders], { cwd: tree })
  const report = JSON.parse(result.stdout.toString()) as Diagnostics
  for (const { code, filename } of report.diagnostics) {
    broken.set(filename, (broken.get(filename) ?? new Set()).add(code ?? ''))
  }
})

afterAll(() => rmSync(tree, { recursive: true, force: true }))

test.each(rows)('lint checks the imports of %s: %s', (file, _statement, rule) => {
  const boundaryRules = [imports, globals, properties].filter((each) => broken.get(file)?.has(each))
  expect(boundaryRules).toEqual(rule === undefined ? [] : [rule])
})
