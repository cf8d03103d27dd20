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

test('a bundle holds every part and leaves the platform to the platform', async () => {
  const text = await build()
  expect(text).toContain('first')
  expect(text).toContain('cloudflare:workers')
  expect(text).toContain('Public')
})

test('a bundle is kept while its files stay the same', async () => {
  await build()
  const made = madeMs()
  await build()
  expect(madeMs()).toBe(made)
  expect(readdirSync(folder).sort()).toEqual(['control.json', 'control.mjs', 'entry.ts', 'part.ts'])
})

test('a bundle is made anew when a part changes', async () => {
  await build()
  writeFileSync(at('part.ts'), "export const word: string = 'second'\n")
  expect(await build()).toContain('second')
})

test('a bundle that was tampered with or cut short is made anew', async () => {
  const good = await build()
  writeFileSync(at('control.mjs'), 'evil()')
  expect(await build()).toBe(good)
  writeFileSync(at('control.json'), '{')
  expect(await build()).toBe(good)
})

test('a Worker that cannot be built says why', async () => {
  writeFileSync(at('entry.ts'), "import './missing.ts'\n")
  expect((await rejectionOf(build()))?.message).toStartWith('Cannot build control: ')
})
