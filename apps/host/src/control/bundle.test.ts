import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { rejectionOf } from '@sandwire/testing'
import { bundleControl } from './bundle.ts'

let folder = ''
const at = (name: string): string => path.join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'bundle-'))
  writeFileSync(at('part.ts'), "export const word: string = 'first'\n")
  writeFileSync(
    at('entry.ts'),
    "import { WorkerEntrypoint } from 'cloudflare:workers'\nimport { word } from './part.ts'\nexport class Public extends WorkerEntrypoint { said = word }\n",
  )
})
afterEach(() => rmSync(folder, { recursive: true }))

const build = (): Promise<string> => bundleControl(at('entry.ts'), folder)
const madeMs = (): number => statSync(at('control.mjs')).mtimeMs

test('bundles every module except platform ones', async () => {
  const text = await build()
  expect(text).toContain('first')
  expect(text).toContain('cloudflare:workers')
  expect(text).toContain('Public')
})

test('reuses the bundle while its inputs are unchanged', async () => {
  await build()
  const made = madeMs()
  await build()
  expect(madeMs()).toBe(made)
  expect(readdirSync(folder).sort()).toEqual(['control.json', 'control.mjs', 'entry.ts', 'part.ts'])
})

test('rebuilds the bundle when an input changes', async () => {
  await build()
  writeFileSync(at('part.ts'), "export const word: string = 'second'\n")
  expect(await build()).toContain('second')
})

test('rebuilds a bundle that was changed or truncated', async () => {
  const good = await build()
  writeFileSync(at('control.mjs'), 'evil()')
  expect(await build()).toBe(good)
  writeFileSync(at('control.json'), '{')
  expect(await build()).toBe(good)
})

test('reports why a Worker cannot be built', async () => {
  writeFileSync(at('entry.ts'), "import './missing.ts'\n")
  expect((await rejectionOf(build()))?.message).toStartWith('Cannot build control: ')
})
